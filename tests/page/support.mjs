// A server of our own, a browser, and what every test of the page promises: no other host, no mail in an address, no errors.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before } from 'node:test';

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);

/**
 * A server and a browser for the tests of a file, from before the first until after the last; `routers` as for `startServer`.
 * Answers how to open the page, as `openPage` does.
 */
export function pages(routers) {
  let server;
  let browser;
  before(async () => {
    [server, browser] = await Promise.all([startServer(routers), startBrowser()]);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  return (options) => openPage(browser, server.address, options);
}

/** Starts the service on a free port; answers its address and how to stop it. `routers` are names of further routers, all alike. */
export async function startServer(routers = []) {
  const folder = await mkdtemp(join(tmpdir(), 'postroom-page-'));
  const config = join(folder, 'config.toml');
  await writeFile(config, routers.map((name) => `[[routers.list]]\nname = "${name}"\npath = "${resolve('models/crumb')}"\n`).join(''));
  const environment = { ...process.env, POSTROOM_SERVER_REQUEST_TIMEOUT_MS: '120000' };
  const server = spawn(process.env.POSTROOM, ['serve', '--port', '0', '--config', config], { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  const exit = new Promise((done) => server.once('exit', done)).finally(() => rm(folder, { recursive: true, force: true }));
  const address = await new Promise((found, failed) => {
    const lines = [];
    exit.then((code) => failed(new Error(`the server ended with ${code}: ${lines.join('\n')}`)));
    for (const stream of [server.stdout, server.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        // eslint-disable-next-line no-control-regex
        const plain = line.replace(/\u001b\[[\d;]*m/g, '');
        const listening = plain.includes('listening') && /(127\.0\.0\.1:\d+)/.exec(plain);
        if (listening) found(`http://${listening[1]}`);
      });
    }
  });
  return { address, stop: () => { server.kill('SIGTERM'); return exit; } };
}

/** A browser that keeps to this machine. */
export function startBrowser() {
  return chromium.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
}

/**
 * Opens the page, with `routes` answered by the test itself, and watches it. `end()` fails where the page asked another host,
 * put a word of a mail (those with the letters "zqx", which no code has) into an address, opened a dialog, or threw.
 */
export async function openPage(browser, address, options = {}) {
  const { path = '/', routes = [], ...context } = options;
  const own = await browser.newContext({ acceptDownloads: true, ...context });
  await own.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: address });
  const page = await own.newPage();
  page.setDefaultTimeout(60_000);
  const faults = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !/^(blob:|data:)/.test(url)) faults.push(`asked ${url}`);
    if (!url.startsWith('data:') && /zqx/i.test(decodeURIComponent(url))) faults.push(`mail in an address: ${url}`);
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('pageerror', (error) => faults.push(`threw: ${error.stack}`));
  page.on('console', (message) => {
    // An endpoint that is not there, a key that is asked for, a busy server are answers, and the page deals with them.
    if (message.type() === 'error' && !/status of (401|404|413|422|503)/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  for (const [pattern, answer] of routes) await page.route(pattern, answer);
  await page.goto(address + path);
  const end = async () => {
    assert.deepEqual(faults, []);
    await own.close();
  };
  return { page, end };
}

/** Types a mail and waits for its decision. */
export async function sendMail(page, subject, text) {
  await page.waitForSelector('#send:not([disabled])');
  await page.fill('#subject', subject);
  await page.evaluate((value) => { document.getElementById('text').value = value; }, text);
  await decided(page, () => page.click('#send'));
}

/** Does something that has a mail routed, and waits until the page shows what came of it. */
export async function decided(page, act) {
  const shown = page.waitForResponse((reply) => reply.url().includes('/v1/attention'));
  await act();
  await shown;
  await page.waitForSelector('#results:not([hidden])');
  await page.waitForSelector('#send:not([disabled])');
}

/** Opens the tab with the maps and waits until all heads are there. */
export async function openInside(page) {
  await page.click('#tab-inside');
  await page.waitForFunction(() => {
    const badges = [...document.querySelectorAll('.thumb .badge')];
    return badges.length > 0 && badges.every((badge) => badge.textContent !== '');
  }, null, { timeout: 180_000 });
}

/** Puts the pointer on a cell of a heat map by its numbers, with the keys. */
export async function pointAt(page, row, column, map = '#inside .canvas canvas') {
  await page.locator(map).focus();
  for (const key of ['ArrowDown', 'PageUp', 'Home']) await page.keyboard.press(key);
  for (let step = 0; step < row; step++) await page.keyboard.press('ArrowDown');
  for (let step = 0; step < column; step++) await page.keyboard.press('ArrowRight');
}

/** What "Copy link" copies. */
export async function copiedLink(page) {
  await page.click('#link');
  await page.waitForSelector('#link:has-text("Copied")');
  return new URL(await page.evaluate(() => navigator.clipboard.readText()));
}

/** The text of a downloaded file, or its bytes. */
export async function download(page, act) {
  const [file] = await Promise.all([page.waitForEvent('download'), act()]);
  const chunks = [];
  for await (const chunk of await file.createReadStream()) chunks.push(chunk);
  return { name: file.suggestedFilename(), bytes: Buffer.concat(chunks) };
}
