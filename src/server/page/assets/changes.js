// Small changes of a mail, to see what they do to its decision.

import { sentences, wordsOf } from './text.js';

const GREETING = /^(hi|hello|hey|dear|good (morning|afternoon|evening|day)|hallo|bonjour|hola)\b[^\n]{0,40}\n+/i;
const CLOSING = /\n(-- ?\n|(thanks|thank you|many thanks|kind regards|best regards|regards|best wishes|best|cheers|yours|sincerely)\b[^\n]{0,20}\n?)[^]*$/i;

/** [name, what it makes of a text]. Each answers the text as it was where it finds nothing to change. */
export const CHANGES = [
  ['Swap two words', (text) => swap(text, wordsOf(text).filter((word) => [...word.text].length > 4))],
  ['Swap two sentences', (text) => ownPart(text, (own) => swap(own, parts(own).slice(1)))],
  ['Drop the greeting', (text) => text.replace(GREETING, '')],
  ['Drop the signature', (text) => text.replace(CLOSING, '\n')],
  ['Change a number', (text) => text.replace(/\d+/, (digits) => digits.replace(/\d/g, (digit) => (Number(digit) + 3) % 10))],
  ['Reverse the sentences', (text) => ownPart(text, (own) => parts(own).reverse().map(({ start, end }) => own.slice(start, end)).join('\n'))],
  ['Reverse the words', (text) => ownPart(text, (own) => wordsOf(own).reverse().map((word) => word.text).join(' '))],
];

/** Changes what stands above the closing: a signature in the middle of a mail would be another mail. */
function ownPart(text, change) {
  const closing = CLOSING.exec(text)?.[0] ?? '';
  return change(text.slice(0, text.length - closing.length)) + closing;
}

function parts(text) {
  return sentences(text, wordsOf(text), false);
}

/** The first two different stretches of a list in each other's place. */
function swap(text, list) {
  const first = list[0];
  const second = first && list.find((other) => text.slice(other.start, other.end) !== text.slice(first.start, first.end));
  if (!second) return text;
  const of = ({ start, end }) => text.slice(start, end);
  return text.slice(0, first.start) + of(second) + text.slice(first.end, second.start) + of(first) + text.slice(second.end);
}
