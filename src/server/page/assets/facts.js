// What was measured, as sentences: without this, the queue falls from so much to so much.

import { h } from './dom.js';
import { percent, quote, readable } from './text.js';
import { VERDICTS } from './words.js';

/** Facts told at most. */
const MOST_FACTS = 4;

/** The parts of a mail that move a queue most, each with what happens without it. */
export function facts(app, mail, sentences, queue) {
  const size = (item) => Math.abs(item.p_before - item.p_after);
  const telling = sentences.filter((item) => percent(item.p_before) !== percent(item.p_after)).sort((a, b) => size(b) - size(a)).slice(0, MOST_FACTS);
  const text = (item) => (item.field === 'subject' ? mail.subject : mail.text).slice(item.start, item.end);
  const shown = mail.html ? (item) => readable(text(item)) : text;
  const told = (item) => {
    const name = `${app.name(queue)} ${moved(item.p_before, item.p_after)}`;
    const rival = item.rivals.reduce((best, one) => (one.p_after - one.p_before > (best ? best.p_after - best.p_before : 0.02) ? one : best), null);
    return rival && item.p_after < item.p_before ? `${name}, ${app.name(rival.queue)} ${moved(rival.p_before, rival.p_after)}` : name;
  };
  return [
    h('h3', {}, 'What was measured'),
    telling.length === 0 && h('p', {}, `No single sentence moves ${app.name(queue)}: each was taken out once, and it stayed where it was.`),
    h('ul.facts', {}, telling.map((item) => h('li', {}, 'Without ', h('q', { dir: 'auto' }, quote(shown(item)).slice(1, -1)), ` ${told(item)}.`))),
  ];
}

/** Whether the marks mean anything: the same with as many parts taken out at random. */
export function verdict(app, check) {
  if (!check) return null;
  const [word, meaning] = VERDICTS[check.why] ?? VERDICTS[check.verdict] ?? [check.verdict, ''];
  const from = percent(check.p_full);
  return h('div.verdict', { 'data-verdict': check.verdict }, h('h3', {}, `Do the marks for ${app.name(check.class)} mean anything?`), h('p', {},
    `Without the ${Math.round(check.q * 100)}% of ${check.unit === 'sentence' ? 'the mail' : 'words'} marked strongest: ${from} \u2192 ${percent(check.p_without_top)}. `
    + `Without as many at random: ${from} \u2192 ${percent(check.p_without_random_mean)}. `, h('b', {}, `${word}: `), meaning));
}

function moved(before, after) {
  if (percent(before) === percent(after)) return `stays at ${percent(before)}`;
  return `${after < before ? 'falls' : 'rises'} from ${percent(before)} to ${percent(after)}`;
}

/** What became of a decision: "Refunds falls from 91% to 34%, Late deliveries rises from 8% to 58%." */
export function compared(app, before, after) {
  const of = (decision, id) => decision.candidates.find(({ queue }) => queue === id)?.confidence;
  const first = before.candidates[0]?.queue;
  const now = after.candidates[0]?.queue;
  if (!first || !now) return now || first ? 'The rest has nothing that could be routed.' : '';
  const said = [first, ...(now === first ? [] : [now])].map((id) => {
    const [from, to] = [of(before, id), of(after, id)];
    if (to === undefined) return `${app.name(id)} falls from ${percent(from)} to under ${percent(after.candidates.at(-1).confidence)}`;
    return from === undefined ? `${app.name(id)} rises to ${percent(to)}` : `${app.name(id)} ${moved(from, to)}`;
  });
  return `${said.join(', ')}.`;
}
