// The picture of the page in the README: why the first example goes where it goes. `node picture.mjs FILE`, by scripts/page-check.

import { decided, openPage, startBrowser, startServer } from './support.mjs';

const WIDTH = 1040;

const [server, browser] = await Promise.all([startServer(), startBrowser()]);
try {
  const { page, end } = await openPage(browser, server.address, { viewport: { width: WIDTH, height: 900 }, colorScheme: 'light', reducedMotion: 'reduce' });
  await page.waitForSelector('#send:not([disabled])');
  await decided(page, () => page.click('#send'));
  await page.waitForSelector('.verdict');
  await page.mouse.move(0, 0);
  const [from, to] = [await page.locator('.tabs').boundingBox(), await page.locator('.why').boundingBox()];
  await page.screenshot({ path: process.argv[2], fullPage: true, clip: { x: 0, y: from.y - 8, width: WIDTH, height: to.y + to.height - from.y + 32 } });
  await end();
} finally {
  await browser.close();
  await server.stop();
}
