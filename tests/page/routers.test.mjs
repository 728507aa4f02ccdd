// A server with several routers: which of them answers is chosen on the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copiedLink, decided, openInside, pages, sendMail } from './support.mjs';

const MAIL = 'My zqxcake arrived cold. Can I get a refund for it?';

const open = pages(['second']);

/** What is asked for no router at all. */
const OF_NO_ROUTER = /\/v1\/(read|routers)$/;

/** The addresses of all requests to the interface. */
function asked(page) {
  const urls = [];
  page.on('request', (request) => { if (request.url().includes('/v1/')) urls.push(new URL(request.url())); });
  return urls;
}

test('the choice goes into every request, and another one has the mail routed again', async () => {
  const { page, end } = await open();
  const urls = asked(page);
  await sendMail(page, '', MAIL);
  assert.deepEqual(await page.getByLabel('Router').locator('option').allTextContents(), ['crumb (default)', 'second']);
  urls.length = 0;
  await page.getByLabel('Router').focus();
  await decided(page, () => page.getByLabel('Router').selectOption('second'));
  // The keyboard stays where it was.
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'SELECT');
  await openInside(page);
  await page.click('#tab-compare');
  await page.click('text=Swap two words');
  await page.waitForSelector('#compare .legend > *');
  const paths = urls.map(({ pathname }) => pathname);
  for (const path of ['/v1/model', '/v1/queues', '/v1/route', '/v1/attention', '/v1/explain', '/v1/compare']) assert.ok(paths.includes(path), path);
  for (const url of urls.filter(({ pathname }) => !OF_NO_ROUTER.test(pathname))) assert.equal(url.searchParams.get('router'), 'second', url.href);
  await end();
});

test('a comparison goes on with another router', async () => {
  const { page, end } = await open();
  await sendMail(page, '', MAIL);
  await page.click('#tab-compare');
  await page.fill('#text-b', 'My zqxcake arrived late.');
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await page.waitForSelector('.pair');
  const asked = page.waitForRequest((request) => request.url().includes('/v1/compare'));
  await page.getByLabel('Router').selectOption('second');
  const again = await asked;
  assert.equal(new URL(again.url()).searchParams.get('router'), 'second');
  assert.equal(JSON.parse(again.postData()).b.text, 'My zqxcake arrived late.');
  assert.equal(await page.inputValue('#text-b'), 'My zqxcake arrived late.');
  await end();
});

test('a link names the router, and no word of the mail; the one of a link is taken', async () => {
  const { page, end } = await open();
  await sendMail(page, 'zqx subject', MAIL);
  await decided(page, () => page.getByLabel('Router').selectOption('second'));
  assert.match(new URL(page.url()).hash, /router=second/);
  const link = await copiedLink(page);
  assert.match(link.hash, /^#tab=why&router=second/);
  assert.doesNotMatch(link.href, /zqx|refund/i);
  await end();
  const again = await open({ path: link.pathname + link.hash });
  const urls = asked(again.page);
  await sendMail(again.page, '', MAIL);
  assert.equal(await again.page.getByLabel('Router').inputValue(), 'second');
  for (const url of urls.filter(({ pathname }) => pathname === '/v1/route')) assert.equal(url.searchParams.get('router'), 'second');
  await again.end();
});

test('a router that is not there is said to be missing, and the default one answers', async () => {
  const { page, end } = await open({ path: '/#tab=why&router=%3Cb%3Enone' });
  await sendMail(page, '', MAIL);
  assert.equal(await page.getByLabel('Router').inputValue(), 'crumb');
  assert.match(await page.textContent('#model'), /The router that the link names is not on this server/);
  await end();
});

test('a message is read by no router, and its mail goes to the chosen one', async () => {
  const { page, end } = await open();
  await page.waitForSelector('#send:not([disabled])');
  await page.getByLabel('Router').selectOption('second');
  await page.waitForSelector('#send:not([disabled])');
  const urls = asked(page);
  const raw = 'From: ann@example.org\r\nSubject: zqx\r\n\r\nWhere is my cake?\r\n';
  await decided(page, () => page.setInputFiles('#file', { name: 'mail.eml', mimeType: 'message/rfc822', buffer: Buffer.from(raw) }));
  assert.equal(urls.find(({ pathname }) => pathname === '/v1/read').search, '');
  assert.equal(urls.find(({ pathname }) => pathname === '/v1/route').search, '?router=second');
  await end();
});

test('where there is one router, or the server lists none, there is no choice and no name is sent', async () => {
  for (const answer of [{ json: { routers: [{ name: 'crumb', default: true, router: 'crumb', version: 'v', queues: 3 }] } }, { status: 404, json: { code: 'not_found' } }]) {
    const { page, end } = await open({ routes: [['**/v1/routers', (route) => route.fulfill(answer)]] });
    const urls = asked(page);
    await sendMail(page, '', MAIL);
    assert.equal(await page.isVisible('#router'), false);
    for (const url of urls) assert.equal(url.searchParams.has('router'), false, url.href);
    const link = await copiedLink(page);
    assert.doesNotMatch(link.href, /router/);
    await end();
  }
});
