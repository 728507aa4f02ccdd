// Parts of a mail that are struck out: sentences, or single words, by click or by key.

import { h, pressable } from './dom.js';
import { inOrder, sentences, unitsOf, without, wordsOf } from './text.js';

export class Strikes {
  /** `struck` is called after each change. */
  constructor(struck) {
    Object.assign(this, { struck, byWord: false, list: [], buttons: [], last: null, run: 0 });
  }

  get some() {
    return this.list.length > 0;
  }

  forget() {
    Object.assign(this, { list: [], last: null, run: this.run + 1 });
  }

  /** The mail whose parts stand to choice: sentences as they were measured, or as they can be told here. */
  offer(mail, look, measured) {
    this.mail = mail;
    this.parts = this.byWord ? words(mail, look) : measured ?? ownSentences(mail, look);
    if (!this.parts.some((part) => this.last && same(part, this.last))) this.last = null;
    this.buttons = [];
  }

  /** Blocks for the mail's view, each a button; `dress(element, item)` paints one. */
  blocks(dress) {
    const title = 'Strike it out and route again';
    return this.parts.map((item) => ({ ...item, make: () => {
      const struck = this.list.some((one) => covers(one, item));
      // Hundreds of words are one stop of the tab key: arrow keys go on from there.
      const reached = !this.byWord || (this.last ? same(this.last, item) : this.buttons.length === 0);
      const element = h(this.byWord ? 'span.single' : 'span.sentence', { role: 'button', tabindex: reached ? '0' : '-1', 'aria-pressed': String(struck), title });
      dress(element, item);
      element.classList.toggle('struck', struck);
      this.buttons.push({ item, element });
      return pressable(element, () => this.strike(item));
    } }));
  }

  /** Struck parts that are no blocks now, as marks. */
  marks() {
    return this.byWord ? [] : this.list.filter((one) => !this.parts.some((item) => same(one, item)))
      .map((item) => ({ ...item, paint: (span) => span.classList.add('struck') }));
  }

  strike(item) {
    const at = this.list.findIndex((one) => covers(one, item));
    if (at >= 0) this.list.splice(at, 1);
    else this.list.push(item);
    Object.assign(this, { last: item, run: this.run + 1 });
    this.struck();
  }

  focus() {
    this.buttons.find(({ item }) => this.last && same(item, this.last))?.element.focus({ preventScroll: true });
  }

  /** Lets arrow keys walk from word to word, and notes where the focus is. */
  watch(view) {
    view.addEventListener('focusin', ({ target }) => {
      this.last = this.buttons.find(({ element }) => element === target)?.item ?? this.last;
    });
    view.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const at = this.buttons.findIndex(({ element }) => element === event.target);
      const to = this.buttons[at + step];
      if (!this.byWord || at < 0 || !to) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      to.element.tabIndex = 0;
      to.element.focus();
    });
    return view;
  }

  /** The mail without what is struck out. */
  rest() {
    const of = (field) => this.list.filter((item) => item.field === field);
    return { subject: without(this.mail.subject, of('subject')), text: without(this.mail.text, of('body')) };
  }
}

function same(a, b) {
  return a.field === b.field && a.start === b.start && a.end === b.end;
}

function covers(a, b) {
  return a.field === b.field && a.start <= b.start && b.end <= a.end;
}

function fields({ subject, text }, look) {
  const units = unitsOf(look);
  return [['subject', subject], ['body', text]].map(([field, from]) => {
    const own = units.filter((unit) => unit.field === field);
    return { field, from, own: own.length ? own : wordsOf(from, field) };
  });
}

function ownSentences(mail, look) {
  return fields(mail, look).flatMap(({ field, from, own }) => sentences(from, own, mail.html && field === 'body').map((range) => ({ ...range, field }))).sort(inOrder);
}

/** Words, without the signs between them. */
function words(mail, look) {
  return fields(mail, look).flatMap(({ own }) => own.filter(({ text }) => /[\p{L}\p{N}]/u.test(text)).map(({ field, start, end }) => ({ field, start, end })));
}
