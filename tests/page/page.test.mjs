// The page as a person meets it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copiedLink, decided, download, openInside, pages, pointAt, sendMail } from './support.mjs';

const MAIL = 'Hello,\n\nmy zqxcake arrived cold. Can I get a refund for it?\nThe driver was kind.\n\n-- \nAnn Bee';

const open = pages();

test('a mail is routed, and the decision is told in words', async () => {
  const { page, end } = await open();
  await sendMail(page, 'Order 12', MAIL);
  const decision = await page.textContent('#decision');
  assert.match(decision, /Refunds/);
  assert.match(decision, /\d+%/);
  assert.match(decision, /Read to the end: \d+ tokens/);
  assert.match(decision, /signature \(\d+ characters\)/);
  assert.equal(await page.locator('#decision .bars tr').count(), 3);
  assert.equal(await page.getAttribute('#decision', 'aria-live'), 'polite');
  await end();
});

test('what was not read is greyed, with the reason', async () => {
  const { page, end } = await open();
  await sendMail(page, '', MAIL);
  assert.match(await page.textContent('#why .mail .unread'), /signature, not read.*Ann Bee/s);
  await end();
});

test('a sentence that is struck out is gone from the next decision, and comes back', async () => {
  const { page, end } = await open();
  await sendMail(page, '', MAIL);
  const sentence = page.locator('#why .sentence', { hasText: 'Can I get a refund' });
  const posted = page.waitForRequest((request) => request.url().endsWith('/v1/route'));
  await sentence.focus();
  await page.keyboard.press('Enter');
  assert.doesNotMatch(JSON.parse((await posted).postData()).text, /refund/);
  await page.waitForSelector('.change:has-text("%")');
  assert.equal(await sentence.getAttribute('aria-pressed'), 'true');
  assert.match(await page.textContent('#decision'), /Without what you struck out/);
  await page.click('text=Put everything back');
  assert.equal(await page.locator('#why .struck').count(), 0);
  assert.doesNotMatch(await page.textContent('#decision'), /Without what you struck out/);
  await end();
});

test('single words are struck out too, by keys', async () => {
  const { page, end } = await open();
  await sendMail(page, '', MAIL);
  await page.getByRole('button', { name: 'Word by word' }).click();
  const words = page.locator('#why .single');
  assert.equal(await words.first().textContent(), 'Hello');
  // Hundreds of words are one stop of the tab key.
  assert.equal(await page.locator('#why .single[tabindex="0"]').count(), 1);
  await words.first().focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'zqxcake');
  const posted = page.waitForRequest((request) => request.url().endsWith('/v1/route'));
  await page.keyboard.press('Enter');
  assert.match(JSON.parse((await posted).postData()).text, /my {2}arrived cold/);
  await page.waitForSelector('.change:has-text("%")');
  assert.equal(await page.locator('#why .single[aria-pressed=true]').textContent(), 'zqxcake');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'zqxcake');
  // Among sentences the word stays struck out.
  await page.getByRole('button', { name: 'Word by word' }).click();
  assert.equal(await page.textContent('#why .sentence .struck'), 'zqxcake');
  await end();
});

test('an edited mail is routed again when the typing rests', async () => {
  const { page, end } = await open();
  await page.waitForSelector('#send:not([disabled])');
  let routed = 0;
  page.on('request', (request) => { if (request.url().endsWith('/v1/route')) routed += 1; });
  await page.fill('#text', 'My order came late');
  await page.waitForTimeout(1200);
  assert.equal(routed, 0, 'nothing is sent before the first decision');
  await sendMail(page, '', 'My order came late');
  await decided(page, () => page.locator('#text').pressSequentially(' today.'));
  assert.equal(routed, 2);
  assert.match(await page.textContent('#why .mail-body'), /My order came late today\./);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'text');
  await end();
});

test('every head is there; a click keeps one, Escape lets it go', async () => {
  const { page, end } = await open();
  await sendMail(page, '', MAIL);
  await openInside(page);
  assert.equal(await page.locator('.thumb').count(), 72);
  const seventh = page.getByRole('button', { name: /^layer 3 head 7,/ });
  await seventh.click();
  assert.equal(await seventh.getAttribute('aria-pressed'), 'true');
  await page.locator('.thumb').first().hover();
  assert.match(await page.textContent('#inside .map h3'), /Layer 3, head 7 \(kept\)/);
  await page.keyboard.press('Escape');
  await page.locator('.thumb').nth(1).hover();
  assert.match(await page.textContent('#inside .map h3'), /Layer 0, head 1$/);
  await end();
});

test('a cell tells its words, and both are lit in the mail', async () => {
  const { page, end } = await open();
  await sendMail(page, '', 'My order came late today.');
  await openInside(page);
  await page.getByRole('button', { name: /^layer 2 head 5,/ }).click();
  const box = await page.locator('.canvas canvas').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await page.textContent('.readout'), /^row '.+' \u2192 column '.+' \d\.\d{3}, layer 2 head 5$/);
  await pointAt(page, 2, 4);
  const said = await page.textContent('.readout');
  assert.match(said, /^row 'order' \u2192 column 'late' \d\.\d{3}, layer 2 head 5$/);
  assert.equal(await page.textContent('.lit-row'), 'order');
  assert.equal(await page.textContent('.lit-column'), 'late');
  const weight = Number(/ (\d\.\d{3}),/.exec(said)[1]);
  const map = await page.evaluate(async () => {
    const reply = await fetch('v1/attention?layers=2&heads=5&reduce=none&rows=all', { method: 'POST',
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: 'My order came late today.' }) });
    return (await reply.json()).attention.data[0][0];
  });
  assert.ok(Math.abs(map[2][4] - weight) < 0.001, `${map[2][4]} is not ${weight}`);
  await page.keyboard.press('Enter');
  assert.match(await page.textContent('#inside .mail'), /My order came late today/);
  assert.equal(await page.textContent('.picked'), 'order');
  await end();
});

test('without special tokens rows are shared out anew, and what went to them is told', async () => {
  const { page, end } = await open();
  await sendMail(page, '', 'My order came late today.');
  await openInside(page);
  await page.getByLabel('[CLS], [SEP]').selectOption('drop');
  await pointAt(page, 1, 0);
  assert.match(await page.textContent('.readout'), /column 'My' .*% of the row went to \[CLS\] and \[SEP\]$/);
  await end();
});

test('a long mail has a map for each window', async () => {
  const { page, end } = await open();
  const sentence = 'My order came late and the cake was cold, so I would like to have my money back. ';
  await sendMail(page, '', sentence.repeat(14));
  await openInside(page);
  assert.match(await page.textContent('#inside'), /overlapping windows/);
  await page.getByLabel('Part').selectOption('1');
  await openInside(page);
  await pointAt(page, 1, 1);
  assert.match(await page.textContent('.readout'), /^row '\w+' \u2192 column '\w+' \d/);
  await end();
});

test('every format saves what is seen', async () => {
  const { page, end } = await open();
  await sendMail(page, '', 'My order came <b>late</b> & cold today.');
  await openInside(page);
  await page.getByRole('button', { name: /^layer 1 head 2,/ }).click();
  const save = (format) => download(page, () => page.getByRole('group', { name: 'Save what is seen' }).getByText(format, { exact: true }).click());
  const json = JSON.parse((await save('JSON')).bytes);
  assert.equal(json.schema, 'attention-view/1');
  assert.equal(json.map, 'Layer 1, head 2');
  assert.match(json.clue, /clue, not a proof/);
  assert.match(json.model, /^crumb /);
  assert.equal(json.data.length, json.rows.length);
  for (const row of json.data) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-3);

  const { bytes } = await save('safetensors');
  const size = Number(bytes.readBigUInt64LE(0));
  const head = JSON.parse(bytes.subarray(8, 8 + size));
  assert.equal(head.attention.dtype, 'F32');
  assert.deepEqual(head.attention.shape, [json.rows.length, json.columns.length]);
  assert.equal(bytes.length, 8 + size + head.offsets.data_offsets[1]);
  assert.equal((8 + size) % 8, 0);
  assert.ok(Math.abs(bytes.readFloatLE(8 + size) - json.data[0][0]) < 1e-5);
  assert.match(JSON.parse(head.__metadata__.meta).clue, /clue, not a proof/);

  const svg = (await save('SVG')).bytes.toString();
  const html = await save('HTML');
  assert.equal(html.name, 'attention-layer-1-head-2.html');
  const elsewhere = await page.context().newPage();
  const parsed = await elsewhere.evaluate(([svgText, htmlText]) => {
    const picture = new DOMParser().parseFromString(svgText, 'image/svg+xml');
    const file = new DOMParser().parseFromString(htmlText, 'text/html');
    return {
      broken: picture.querySelector('parsererror') !== null,
      texts: [...picture.querySelectorAll('text')].map((text) => text.textContent),
      squares: picture.querySelectorAll('rect').length,
      scripts: [...file.querySelectorAll('script')].map((script) => script.type),
      bold: file.querySelectorAll('b').length,
      data: JSON.parse(file.getElementById('data').textContent),
    };
  }, [svg, html.bytes.toString()]);
  assert.equal(parsed.broken, false);
  for (const text of ['late', '<', '&', 'is looked at \u2192', '\u2190 this word looks at', json.clue]) assert.ok(parsed.texts.includes(text), text);
  assert.equal(parsed.squares, 1 + json.rows.length * json.columns.length);
  assert.deepEqual([parsed.scripts, parsed.bold], [['application/json'], 0]);
  assert.deepEqual(parsed.data.data, json.data);

  assert.equal((await save('PNG')).bytes.subarray(1, 4).toString(), 'PNG');
  await end();
});

test('two mails are compared, and a change for B is made by a button', async () => {
  const { page, end } = await open();
  await sendMail(page, 'Order', MAIL);
  await page.click('#tab-compare');
  await page.click('text=Drop the greeting');
  await page.waitForSelector('.pair');
  assert.doesNotMatch(await page.inputValue('#text-b'), /Hello/);
  assert.match(await page.inputValue('#text-a'), /Hello/);
  assert.match(await page.textContent('.pair'), /Refunds/);
  assert.deepEqual(await page.locator('.alone').allTextContents(), ['Hello', ',']);
  await end();
});

test('a raw message is read by the server, and offsets point into it as decoded', async () => {
  const { page, end } = await open();
  await page.waitForSelector('#send:not([disabled])');
  const body = Buffer.from('Wo ist meine Torte? \u{1f382} Caf\u00e9 zqx\r\n\r\nOn Mon, 3 Mar 2025 at 10:12, Crumb <hello@crumb.example> wrote:\r\n> Your order is on its way.\r\n').toString('base64');
  const raw = `From: ann@example.org\r\nSubject: =?utf-8?q?Bestellung_=C3=BCber_12?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${body}\r\n`;
  await decided(page, () => page.setInputFiles('#file', { name: 'mail.eml', mimeType: 'message/rfc822', buffer: Buffer.from(raw) }));
  assert.equal(await page.inputValue('#subject'), 'Bestellung \u00fcber 12');
  assert.match(await page.textContent('#why .mail-body'), /Wo ist meine Torte\? \u{1f382} Caf\u00e9 zqx/u);
  assert.match(await page.textContent('#why .unread'), /earlier mail, not read/);
  await openInside(page);
  const words = await page.locator('#inside .mail .word').allTextContents();
  assert.ok(words.includes('Caf\u00e9') && words.includes('Torte'), words.join(' '));
  await end();
});

test('a link keeps the view, not the mail', async () => {
  const { page, end } = await open();
  await sendMail(page, 'zqx subject', MAIL);
  await openInside(page);
  await page.getByRole('button', { name: /^layer 4 head 1,/ }).click();
  await page.getByLabel('Colour').selectOption('log');
  const link = await copiedLink(page);
  assert.match(link.hash, /^#tab=inside&/);
  assert.doesNotMatch(link.href, /zqx|refund/i);
  await end();
  const again = await open({ path: link.pathname + link.hash });
  await sendMail(again.page, '', MAIL);
  await openInside(again.page);
  assert.match(await again.page.textContent('#inside .map h3'), /Layer 4, head 1 \(kept\)/);
  assert.equal(await again.page.getByLabel('Colour').inputValue(), 'log');
  await again.end();
});

test('a server that wants a key is given one, which is kept nowhere', async () => {
  const { page, end } = await open();
  await page.waitForSelector('#send:not([disabled])');
  await page.route('**/v1/route', (route) => (route.request().headers().authorization === 'Bearer open-sesame'
    ? route.continue()
    : route.fulfill({ status: 401, contentType: 'application/problem+json', body: '{"code":"unauthorized","detail":"a key is needed"}' })));
  await page.click('#send');
  await page.waitForSelector('#key:focus');
  await page.keyboard.type('open-sesame');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#decision .bars');
  assert.equal(await page.isVisible('#key-form'), false);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.getElementById('key').value]));
  assert.doesNotMatch(kept, /sesame/);
  await end();
});

test('tabs answer to the arrow keys, and the page fits a phone in the dark', async () => {
  const { page, end } = await open({ viewport: { width: 390, height: 844 }, colorScheme: 'dark', reducedMotion: 'reduce' });
  await sendMail(page, 'A subject', MAIL);
  await page.focus('#tab-why');
  for (const tab of ['inside', 'compare', 'why']) {
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getAttribute(`#tab-${tab}`, 'aria-selected'), 'true');
    assert.equal(await page.isVisible(`#${tab}`), true);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${tab} is ${width} wide`);
  }
  await end();
});
