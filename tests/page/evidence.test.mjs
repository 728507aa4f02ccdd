// The tab "Why" on given evidence: what is painted, what is said, and what a rival queue changes about both.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openInside, pages, sendMail } from './support.mjs';

const TEXT = 'It came at four. Can I get my money back? Nice driver.';
const QUEUES = ['refunds', 'late-deliveries', 'general-feedback', 'order-changes', 'wholesale-orders', 'allergy-questions'];

/** Logits of every queue for the whole mail, and without each stretch, in the order of QUEUES. */
const FULL = { logits: [5, 3, 0, 0, 0, 0], p: [0.91, 0.07, 0.01, 0.005, 0.003, 0.002] };
const SENTENCES = [
  { field: 'body', start: 0, end: 16, logits: [5.2, 1, 0, 0, 0, 0], p: [0.98, 0.01, 0.004, 0.003, 0.002, 0.001] },
  { field: 'body', start: 17, end: 41, logits: [1, 4, 0, 0, 0, 0], p: [0.34, 0.58, 0.03, 0.03, 0.01, 0.01] },
  { field: 'body', start: 42, end: 54, logits: [5, 3, 0, 0, 0, 0], p: [0.91, 0.07, 0.01, 0.005, 0.003, 0.002] },
];
const WORDS = [{ field: 'body', start: 30, end: 35, logits: [2, 3.5, 0, 0, 0, 0], p: [0.5, 0.45, 0.02, 0.01, 0.01, 0.01] }];

function explanation(check) {
  const items = (parts, queue) => parts.map(({ logits, p, ...place }) => ({ ...place, text: TEXT.slice(place.start, place.end),
    logit: FULL.logits[queue] - logits[queue], p_before: FULL.p[queue], p_after: p[queue] }));
  return {
    schema: 'explain/1', prediction: { queue: 'refunds', confidence: 0.91, scores: QUEUES.map((queue, i) => ({ queue, logit: FULL.logits[i], p: FULL.p[i] })) },
    evidence: QUEUES.flatMap((queue, i) => [['sentence', SENTENCES], ['word', WORDS]].map(([unit, parts]) => (
      { method: 'occlusion', class: queue, against: null, perturb: 'delete', unit, items: items(parts, i) }))),
    check: { method: 'occlusion', class: 'refunds', unit: 'word', q: 0.1, p_full: 0.91, p_without_top: 0.22, p_without_random_mean: 0.88, why: null, ...check },
  };
}

const open = pages();

async function openWith(check) {
  const opened = await open();
  await opened.page.route('**/v1/explain?*', (route) => route.fulfill({ json: explanation(check) }));
  await sendMail(opened.page, '', TEXT);
  await opened.page.waitForSelector('.facts');
  return opened;
}

const sentence = (page, text) => page.locator('#why .sentence', { hasText: text });

test('for and against differ in colour, line and hatch; what moves nothing is not painted', async () => {
  const { page, end } = await openWith({ verdict: 'supported' });
  const looks = (text) => sentence(page, text).evaluate((element) => {
    const { borderBottomStyle, borderBottomColor, backgroundImage } = getComputedStyle(element);
    return { sign: [...element.classList].filter((name) => /^(for|against)$/.test(name)).join(), borderBottomStyle, borderBottomColor, hatched: backgroundImage !== 'none' };
  });
  assert.deepEqual(await looks('money'), { sign: 'for', borderBottomStyle: 'solid', borderBottomColor: 'rgb(31, 95, 191)', hatched: false });
  assert.equal((await looks('Nice')).sign, '');
  assert.equal(await page.textContent('#why .telling.for'), 'money');
  await page.getByRole('button', { name: 'Late deliveries 7%' }).click();
  assert.equal((await looks('four')).sign, 'for');
  assert.deepEqual(await looks('money'), { sign: 'against', borderBottomStyle: 'dashed', borderBottomColor: 'rgb(186, 84, 0)', hatched: true });
  await end();
});

test('facts are sentences about measured runs, with the queue that gains', async () => {
  const { page, end } = await openWith({ verdict: 'supported' });
  const facts = await page.locator('.facts li').allTextContents();
  assert.equal(facts[0], 'Without Can I get my money back? Refunds falls from 91% to 34%, Late deliveries rises from 7% to 58%.');
  assert.equal(facts[1], 'Without It came at four. Refunds rises from 91% to 98%.');
  await end();
});

test('against the runner-up a sentence counts for what it does to the lead', async () => {
  const { page, end } = await openWith({ verdict: 'supported' });
  // Refunds gains 0.2 without it, the runner-up loses 2: it speaks against refunds and, more, for the other.
  assert.equal(await sentence(page, 'four').evaluate((element) => element.classList.contains('against')), false);
  await page.getByRole('button', { name: 'Against the runner-up' }).click();
  assert.equal(await sentence(page, 'four').evaluate((element) => element.classList.contains('against')), true);
  assert.match(await page.textContent('.keys'), /speaks for Refunds rather than Late deliveries/);
  await end();
});

for (const [check, words] of [
  [{ verdict: 'supported' }, 'Supported: the marked words decide far more than others do.'],
  [{ verdict: 'not_supported' }, 'Not supported: taking out any other words does as much.'],
  [{ verdict: 'undecidable', why: 'prior_wins' }, 'Cannot be said: a mail without any text gets this queue at least as surely.'],
]) {
  test(`the verdict is told with its figures: ${check.verdict}`, async () => {
    const { page, end } = await openWith(check);
    const verdict = await page.textContent('.verdict');
    assert.ok(verdict.includes('Without the 10% of words marked strongest: 91% \u2192 22%. Without as many at random: 91% \u2192 88%.'), verdict);
    assert.ok(verdict.includes(words), verdict);
    await end();
  });
}

test('methods are compared for the chosen queue, and a verdict names the queue that it is about', async () => {
  const { page, end } = await open();
  await page.route('**/v1/explain?*', (route) => {
    const asked = new URL(route.request().url()).searchParams;
    if (!asked.has('method')) return route.fulfill({ json: explanation({ verdict: 'supported' }) });
    const queue = asked.get('classes');
    const found = (method, signed, value) => ({ method, class: queue, against: null, unit: 'word', signed, items: [{ field: 'body', start: 30, end: 35, text: 'money', ...value }] });
    return route.fulfill({ json: {
      evidence: [found('occlusion', true, { logit: -1 }), found('attention', false, { weight: 0.4 })],
      checks: [{ method: 'occlusion', class: 'refunds', unit: 'word', q: 0.1, p_full: 0.91, p_without_top: 0.22, p_without_random_mean: 0.88, verdict: 'undecidable', why: 'prior_wins' }],
      agreement: [{ a: 'occlusion', b: 'attention', class: queue, against: null, kendall_tau_b: 0.5, top10_overlap: 1 }],
    } });
  });
  await sendMail(page, '', TEXT);
  await openInside(page);
  await page.locator('#inside label.select').filter({ hasText: /^For / }).locator('select').selectOption('late-deliveries');
  await page.getByRole('button', { name: 'Measure them' }).click();
  await page.waitForSelector('#inside table.methods');
  assert.match(await page.locator('#inside table.methods').first().textContent(), /Cannot be saidRefunds 91% \u2192 22%, at random 88%/);
  assert.match(await page.locator('#inside table.methods').last().textContent(), /0\.50, 10 of 10/);
  assert.match(await page.textContent('#inside'), /A mail without any text gets Refunds at least as surely/);
  await end();
});

test('a server that cannot measure leaves striking out', async () => {
  const { page, end } = await open();
  await page.route('**/v1/explain?*', (route) => route.fulfill({ status: 404, json: { code: 'not_found', detail: 'no such endpoint' } }));
  await sendMail(page, '', TEXT);
  await page.waitForSelector('text=This server does not measure evidence');
  assert.equal(await page.locator('#why .sentence').count(), 3);
  await end();
});
