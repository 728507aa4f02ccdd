// The decision, in words.

import { $, fill, h } from './dom.js';
import { percent } from './text.js';
import { CUTS, DECISIONS, KINDS, MAIL_NOTES, REASONS } from './words.js';

/** Shows a decision; `before` is the one for the whole mail where parts were struck out. */
export function showDecision(app, decision, before = null) {
  const { candidates, confidence, queue, input, mail } = decision;
  const likeliest = queue?.id ?? candidates[0]?.queue;
  const sure = h('span.sure', {}, confidence === null ? '' : percent(confidence));
  const possible = new Set(decision.candidate_set ?? []);
  fill($('decision'),
    h('p.state', { 'data-state': decision.decision }, DECISIONS[decision.decision] ?? decision.decision),
    h('p.queue', {}, likeliest ? [app.name(likeliest), ' ', sure] : 'No queue'),
    before && h('p.quiet', {}, `Without what you struck out. The whole mail: ${app.name(before.candidates[0]?.queue)}, ${percent(before.confidence ?? 0)}.`),
    decision.reasons.length > 0 && h('ul.reasons', {}, decision.reasons.map((reason) => h('li', {}, REASONS[reason] ?? reason))),
    candidates.length > 0 && h('table.bars', {}, h('caption.sr', {}, 'How likely each queue is'), candidates.map((candidate) => bar(app, candidate, possible))),
    possible.size > 0 && h('p.quiet', {}, `For a person: ${[...possible].map(app.name).join(', ')} ${possible.size > 1 ? 'remain' : 'remains'} possible.`),
    h('p.quiet', {}, read(input, mail)));
}

function bar(app, { queue, confidence }, possible) {
  return h('tr', {}, h('th', { scope: 'row' }, app.name(queue), possible.has(queue) ? '\u00a0\u25cf' : ''),
    h('td.track', { 'aria-hidden': 'true' }, h('span.fill', { style: { width: `${Math.max(0.4, confidence * 100)}%` } })),
    h('td.number', {}, percent(confidence)));
}

/** What of the mail was read, and what it turned out to be. */
function read(input, mail) {
  const number = (count) => count.toLocaleString('en-GB');
  const said = [input.truncated
    ? `Read ${number(input.tokens_used)} of ${number(input.tokens_total)} tokens.`
    : `Read to the end: ${number(input.tokens_used)} tokens${input.windows > 1 ? ` in ${input.windows} overlapping windows` : ''}.`];
  const cuts = Object.entries(mail.cut).map(([why, count]) => `${CUTS[why] ?? why} (${number(count)} characters)`);
  if (cuts.length) said.push(`Left out: ${cuts.join(', ')}.`);
  if (mail.attachments) said.push(`${mail.attachments} attachment${mail.attachments > 1 ? 's' : ''} not read.`);
  if (KINDS[mail.kind]) said.push(`It is ${KINDS[mail.kind]}${mail.kind_evidence ? ` (${mail.kind_evidence})` : ''}.`);
  for (const note of mail.notes ?? []) if (MAIL_NOTES[note]) said.push(MAIL_NOTES[note]);
  return said.join(' ');
}
