// The tab "Compare": the maps of two mails and their difference, the evidence on both.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copiedLink, pages, pointAt, sendMail } from './support.mjs';

const open = pages();

const [A, B] = ['My zqxcake came late today.', 'My zqxcake came cold today.'];

/** Opens the comparison of two mails and waits for its maps. */
async function compareMails(page, a = A, b = B) {
  await sendMail(page, '', a);
  await page.click('#tab-compare');
  await page.fill('#text-b', b);
  // Maps of an earlier comparison stand until the new ones are there: without their legend they are not taken for them.
  await page.evaluate(() => document.querySelector('#compare .legend')?.replaceChildren());
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await drawn(page);
}

/** Waits until the maps stand, after something that has them asked for. */
async function drawn(page) {
  await page.waitForFunction(() => document.querySelector('.contrast')?.parentElement.getAttribute('aria-busy') === null
    && document.querySelector('#compare .legend')?.children.length > 0);
}

async function choose(page, label, value) {
  await chosen(page, label).selectOption(value);
  await drawn(page);
}

/** The select whose label begins so. */
function chosen(page, label) {
  return page.locator('#compare .controls label').filter({ hasText: new RegExp(`^${label.replace(/[[\]]/g, '\\$&')} `) }).locator('select');
}

test('words of both mails stand in one order, and what one of them lacks is a gap', async () => {
  const { page, end } = await open();
  const told = await page.evaluate(async () => {
    const { difference, largest, places, spread } = await import('/page/paired.js');
    const units = (words) => ['[CLS]', ...words, '[SEP]'].map((text, i, all) => (
      { i, text, special: i === 0 || i === all.length - 1, field: 'body', start: 10 * i }));
    const [a, b] = [units(['Hello', 'my', 'cake']), units(['my', 'cold', 'cake'])];
    const words = [a, b].map((all) => all.filter(({ special }) => !special));
    const list = places(a, b, words, [[1, 0], [2, 2]]);
    const map = (rows, weight) => ({ rows, columns: rows, dead: null, data: Float32Array.from(rows.flatMap((_, y) => rows.map((__, x) => weight(y, x)))) });
    const maps = (special) => [spread(map(a, () => 0.2), list, 'a', special, true), spread(map(b, (_, x) => x / 10), list, 'b', special, true)];
    const rows = ({ data, columns }) => list.map((_, y) => [...data.slice(y * columns.length, (y + 1) * columns.length)].map((weight) => (Number.isNaN(weight) ? null : Number(weight.toFixed(3)))));
    const [keep, drop] = [difference(...maps('keep')), difference(...maps('drop'))];
    return { words: list.map(({ text, a: left, b: right }) => [text, left?.at ?? null, right?.at ?? null]), keep: rows(keep), drop: rows(drop), most: largest(drop),
      gaps: list.filter(keep.gap).map(({ text }) => text), removed: maps('drop')[0].removed.map((mass) => Number(mass.toFixed(3))) };
  });
  assert.deepEqual(told.words, [['[CLS]', 0, 0], ['Hello', 1, null], ['my', 2, 1], ['cold', null, 2], ['cake', 3, 3], ['[SEP]', 4, 4]]);
  assert.deepEqual(told.gaps, ['Hello', 'cold']);
  assert.deepEqual(told.keep[0], [-0.2, null, -0.1, null, 0.1, 0.2]);
  assert.deepEqual(told.keep[1], Array(6).fill(null));
  // Without special tokens each row is shared out anew: a third each in A, a sixth, a third and a half in B.
  assert.deepEqual(told.drop[2], [null, -0.167, null, 0.167]);
  assert.deepEqual(told.removed, [0.4, 0.4, 0.4, 0, 0.4, 0.4]);
  assert.ok(Math.abs(told.most - 1 / 6) < 1e-6);
  await end();
});

test('the two ends of a difference are told apart by everybody, and are not the colours of evidence', async () => {
  // Machado, Oliveira and Fernandes 2009, severity 1.
  const VISION = {
    all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  };
  const lab = (matrix, colour) => {
    const linear = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    const [r, g, b] = matrix.map((row) => Math.max(0, Math.min(1, row.reduce((sum, weight, i) => sum + weight * linear[i], 0))));
    const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089]
      .map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116));
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const apart = (matrix, one, other) => Math.hypot(...lab(matrix, one).map((part, i) => part - lab(matrix, other)[i]));
  for (const colorScheme of ['light', 'dark']) {
    const { page, end } = await open({ colorScheme });
    const colours = await page.evaluate(async () => {
      const { colours: read } = await import('/page/paint.js');
      const { between } = read();
      const style = getComputedStyle(document.documentElement);
      return { ends: [between(-1), between(1)], half: [between(-0.5), between(0.5)], none: between(0),
        evidence: ['--for', '--against'].map((name) => style.getPropertyValue(name).trim().split(' ').map(Number)) };
    });
    for (const [name, matrix] of Object.entries(VISION)) {
      assert.ok(apart(matrix, ...colours.ends) > 40, `${colorScheme}, ${name}: ${apart(matrix, ...colours.ends)}`);
      assert.ok(apart(matrix, ...colours.half) > 20, `${colorScheme}, ${name}, half: ${apart(matrix, ...colours.half)}`);
      for (const end of colours.ends) assert.ok(apart(matrix, end, colours.none) > 40, `${colorScheme}, ${name}, none`);
    }
    for (const one of colours.ends) for (const other of colours.evidence) assert.ok(apart(VISION.all, one, other) > 40, `${one} is like ${other}`);
    await end();
  }
});

test('a cell tells the weights of both mails and their difference, and lights both words in both', async () => {
  const { page, end } = await open();
  await compareMails(page);
  await choose(page, 'Maps', 'head');
  await choose(page, 'Layer', '2');
  await choose(page, 'Head', '5');
  await choose(page, '[CLS], [SEP]', 'keep');
  assert.equal(await page.locator('#compare .canvas canvas').count(), 3);
  // [CLS] My zqxcake came late cold today . [SEP]: row "zqxcake", column "today".
  await pointAt(page, 2, 6, '.of-both .canvas canvas');
  const said = await page.textContent('#compare .readout');
  const [, a, b, change] = /^row 'zqxcake' \u2192 column 'today': A (\d\.\d{3}), B (\d\.\d{3}), difference ([+\u2212]\d\.\d{3})$/.exec(said) ?? assert.fail(said);
  const weights = await page.evaluate((texts) => Promise.all(texts.map(async (text) => {
    const reply = await fetch('v1/attention?layers=2&heads=5&reduce=none&rows=all', { method: 'POST',
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text }) });
    return (await reply.json()).attention.data[0][0][2][5];
  })), [A, B]);
  assert.ok(Math.abs(weights[0] - a) < 0.001 && Math.abs(weights[1] - b) < 0.001, `${said}, not ${weights}`);
  assert.ok(Math.abs(weights[1] - weights[0] - Number(change.replace('\u2212', '-'))) < 0.001, `${said}, not ${weights}`);
  assert.deepEqual(await page.locator('#compare .lit-row').allTextContents(), ['zqxcake', 'zqxcake']);
  assert.deepEqual(await page.locator('#compare .lit-column').allTextContents(), ['today', 'today']);
  await end();
});

test('the pointer on one map is on all three; a word of one mail has no difference', async () => {
  const { page, end } = await open();
  await compareMails(page);
  await pointAt(page, 4, 0, '.of-a canvas');
  assert.match(await page.textContent('#compare .readout'), /^row 'late' \u2192 column 'My': A \d\.\d{3}, B not there$/);
  assert.deepEqual(await page.locator('#compare .lit-row').allTextContents(), ['late']);
  assert.match(await page.textContent('#compare .legend'), /2 words of one mail only/);
  await page.locator('.of-b canvas').hover();
  assert.match(await page.textContent('#compare .readout'), /^row '.+' \u2192 column '.+': A .+, B .+/);
  await page.mouse.move(0, 0);
  await page.locator('#tab-compare').focus();
  assert.equal((await page.textContent('#compare .readout')).trim(), '');
  assert.equal(await page.locator('#compare .lit-row, #compare .lit-column').count(), 0);
  await end();
});

test('two mails that are the same do not differ; every kind of map is there', async () => {
  const { page, end } = await open();
  await compareMails(page, A, A);
  assert.match(await page.textContent('#compare .legend'), /There is no difference/);
  await compareMails(page);
  for (const kind of ['rollout', 'relevance', 'head', 'layer']) {
    await choose(page, 'Maps', kind);
    await choose(page, '[CLS], [SEP]', kind === 'head' ? 'keep' : 'drop');
    assert.equal(await page.locator('#compare .banner.bad').count(), 0, kind);
    assert.match(await page.textContent('#compare .legend'), /more in A \u2212\d\.\d{3}\+\d\.\d{3} more in B/, kind);
  }
  await end();
});

test('evidence is painted on both mails, alike', async () => {
  const { page, end } = await open();
  const asked = [];
  await page.route('**/v1/explain?*', (route) => {
    const { text } = JSON.parse(route.request().postData());
    asked.push(text);
    const items = (logit) => [{ field: 'body', start: 0, end: text.length, text, logit, p_before: 0.9, p_after: 0.4 }];
    const effect = text === A ? 2 : -1;
    const classes = new URL(route.request().url()).searchParams.get('classes').split(',');
    return route.fulfill({ json: { evidence: classes.map((queue) => ({ method: 'occlusion', unit: 'sentence', class: queue, items: items(effect) })) } });
  });
  await compareMails(page);
  asked.length = 0;
  await page.getByLabel('Marked').selectOption({ index: 1 });
  await page.waitForSelector('#compare .mail .for');
  assert.deepEqual(asked, [A, B]);
  const weight = (sign) => page.locator(`#compare .mail .${sign}`).first().evaluate((element) => element.style.getPropertyValue('--weight'));
  assert.deepEqual([await weight('for'), await weight('against')], ['1.000', '0.500']);
  await page.getByLabel('Marked').selectOption('words');
  assert.deepEqual(await page.locator('#compare .mail .alone').allTextContents(), ['late', 'cold']);
  await end();
});

test('a link keeps which maps are compared, and nothing of the mails', async () => {
  const { page, end } = await open();
  await compareMails(page);
  await choose(page, 'Maps', 'head');
  await choose(page, 'Head', '7');
  const link = await copiedLink(page);
  assert.doesNotMatch(link.href, /zqx|late|cold/i);
  await end();
  const again = await open({ path: link.pathname + link.hash });
  await compareMails(again.page);
  assert.equal(await chosen(again.page, 'Head').inputValue(), '7');
  await again.end();
});
