// Mail that wants to be more than text. It is shown as text, character for character, and nothing of it runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openInside, pages, sendMail } from './support.mjs';

const MAILS = {
  'script tags': 'zqx <script>alert(1)</script> refund <img src=x onerror=alert(2)> please &amp; <svg/onload=alert(3)>',
  'an attribute that closes itself': 'zqx "><b onmouseover="alert(1)">refund</b> \' onfocus=alert(2) autofocus x=\' `${alert(3)}` {{7*7}}',
  'a link that runs': 'zqx javascript:alert(1) refund data:text/html,<script>alert(2)</script>',
  'directions turned round': 'zqx \u202eDNUFER\u202c please \u2066\u2067\u202e return my order \u05e9\u05dc\u05d5\u05dd refund',
  'emoji of several': 'zqx \u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{1f3f4}\u{e0067}\u{e0062}\u{e007f} cafe\u0301 \u{1f382} refund my \u{1d4bb}ancy cake',
  'a very long word': `zqx ${'x'.repeat(500)} refund ${'\u{1f382}'.repeat(200)} please`,
  'control characters': 'zqx refund\u0000 my \u0007cake\u001b[31m please\u000b now\u000cthen',
};

const open = pages();

/** Controls have pictures; all else stands as it was sent. */
function shown(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)));
}

for (const [name, text] of Object.entries(MAILS)) {
  test(`${name}: shown as text, words where they stand`, async () => {
    const { page, end } = await open();
    const before = page.waitForResponse((reply) => reply.url().includes('/v1/attention'));
    await sendMail(page, text.slice(0, 60).replace(/[\r\n]/g, ' '), text);
    const reply = await (await before).json();
    for (const unit of reply.units.filter(({ field }) => field === 'body')) {
      assert.equal(text.slice(unit.start, unit.end), unit.text, JSON.stringify(unit));
    }
    const elements = await page.evaluate(() => document.querySelectorAll('main script, main img, main svg, main b[onmouseover], main iframe').length);
    assert.equal(elements, 0);
    const html = /<(script|img|b)\b/.test(text);
    const own = async (tab) => page.evaluate((id) => {
      const copy = document.querySelector(`#${id} .mail-body`).cloneNode(true);
      copy.querySelectorAll('.tag').forEach((tag) => tag.remove());
      return copy.textContent;
    }, tab);
    if (!html) assert.equal(await own('why'), shown(text));
    else assert.match(await own('why'), /zqx/);
    await openInside(page);
    if (!html) assert.equal(await own('inside'), shown(text));
    const pointed = async (tab, canvas) => {
      await page.locator(`#${tab} ${canvas}`).focus();
      for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'End', 'PageDown']) await page.keyboard.press(key);
      assert.match(await page.textContent(`#${tab} .readout`), /^row /);
      assert.doesNotMatch(await page.textContent(`#${tab} .readout`), /[\u202a-\u202e\u2066-\u2069]/);
    };
    await pointed('inside', '.canvas canvas');
    await page.click('#tab-compare');
    await page.click('text=Reverse the words');
    await page.waitForSelector('#compare .legend > *');
    if (!html) assert.equal(await own('compare'), shown(text));
    await pointed('compare', '.of-both .canvas canvas');
    const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(width <= 0, `${width} pixels too wide`);
    await end();
  });
}

test('inline script is refused by the policy even where markup got in', async () => {
  const { page } = await open();
  const ran = await page.evaluate(async () => {
    const range = document.createRange();
    document.body.append(range.createContextualFragment('<script>window.ran = 1</script><img src="x" onerror="window.ran = 2">'));
    await new Promise((done) => setTimeout(done, 300));
    return window.ran ?? null;
  });
  assert.equal(ran, null);
  await page.context().close();
});
