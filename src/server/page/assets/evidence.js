// Measured evidence: what each part of a mail does for a queue, and how that is painted.

import { percent } from './text.js';

/** What moves less than this share of the strongest part is not painted: a faint colour on every word says nothing. */
const LEAST = 0.12;

/**
 * What each part does for a queue: it was really taken out and the mail routed again. Against `other` a part counts for
 * what it does to the lead. `rivals` are the same parts as every other queue sees them.
 */
export function evidenceOf(reply, queue, other = null) {
  const measured = (reply?.evidence ?? []).filter(({ method }) => method === 'occlusion');
  const of = (unit) => {
    const found = (id) => measured.find((one) => one.unit === unit && one.class === id)?.items;
    const [own, against] = [found(queue), found(other)];
    return own?.map((item, index) => ({ ...item, logit: item.logit - (against?.[index].logit ?? 0),
      rivals: measured.filter((one) => one.unit === unit && one.class !== queue).map((one) => ({ queue: one.class, ...one.items[index] })) }));
  };
  return { sentence: of('sentence'), word: of('word') };
}

/** The effect that is painted deepest. */
export function strongest(...lists) {
  return Math.max(0.25, ...lists.flat().map((item) => Math.abs(item?.logit ?? 0)));
}

/** Paints an element by what its part does for the queue called `name`; answers whether that is anything to speak of. */
export function dress(element, item, name, largest) {
  const part = Math.abs(item.logit) / largest;
  if (part < LEAST) return false;
  element.classList.add(item.logit > 0 ? 'for' : 'against');
  element.style.setProperty('--weight', part.toFixed(3));
  element.title = `${item.logit > 0 ? 'For' : 'Against'} ${name}: ${percent(item.p_before)} with it, ${percent(item.p_after)} without it`;
  return true;
}

/** Marks for a mail: sentences where they are wanted, and words. */
export function evidenceMarks({ sentence = [], word = [] }, name, largest) {
  return [
    ...sentence.map((item) => ({ ...item, paint: (span) => dress(span, item, name, largest) })),
    ...word.map((item) => ({ ...item, paint: (span) => {
      if (dress(span, item, name, largest)) span.classList.add('telling');
    } })),
  ];
}
