// The form: a mail is typed, pasted, opened, dropped or taken from the examples.

import { $, fill, h } from './dom.js';
import { postMail } from './api.js';
import { isMessage } from './text.js';
import { EXAMPLES } from './words.js';

/** How long nothing is typed until an edited mail is sent again. */
const TYPING_MS = 800;

export class Form {
  /** `send()` when a mail stands there to be routed, `failed(problem)` where a message cannot be read; `edits()` says whether edits are sent. */
  constructor({ send, failed, edits }) {
    Object.assign(this, { send, failed, edits, loaded: null, typing: null });
    this.listen();
    this.listenForFiles();
    this.offerExamples();
    [, $('subject').value, $('text').value] = EXAMPLES[0];
  }

  /** The mail as it stands; a raw message while nobody has changed it. */
  get mail() {
    const [subject, text] = [$('subject').value, $('text').value];
    const { loaded } = this;
    const raw = loaded && loaded.subject === subject && loaded.text === text ? loaded.raw : null;
    return { subject: raw ? loaded.sent.subject : subject, text: raw ? loaded.sent.text : text, raw, html: false };
  }

  get empty() {
    return ($('subject').value + $('text').value).trim() === '';
  }

  /** The text where it is a whole message with its headers, as bytes. */
  get message() {
    const text = $('text').value;
    return $('subject').value.trim() === '' && isMessage(text) ? new TextEncoder().encode(text) : null;
  }

  write(subject, text) {
    [$('subject').value, $('text').value] = [subject, text];
  }

  /** Forgets an edit that waits to be sent. */
  settle() {
    clearTimeout(this.typing);
  }

  /** Takes a raw message: the server says how it reads, and the form shows that. */
  async take(raw) {
    try {
      const sent = await postMail('v1/read', { raw });
      this.write(sent.subject, sent.text);
      // A text field has line breaks of its own; offsets point into the text as the server has it.
      this.loaded = { raw, sent, subject: $('subject').value, text: $('text').value };
      await this.send();
    } catch (problem) {
      this.failed(problem);
    }
  }

  async takeFile(file) {
    const raw = new Uint8Array(await file.arrayBuffer());
    // A plain text file is no message: it would lose its first lines to a header that is not there.
    const text = new TextDecoder().decode(raw);
    if (isMessage(text) || /\.eml$/i.test(file.name)) return this.take(raw);
    this.write('', text);
    this.send();
  }

  listen() {
    $('mail').addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    $('mail').addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.send();
    });
    // Who edits a mail whose decision stands sees what becomes of it as soon as the typing rests.
    for (const field of ['subject', 'text']) {
      $(field).addEventListener('input', () => {
        this.settle();
        if (this.edits()) this.typing = setTimeout(() => !this.empty && this.send(), TYPING_MS);
      });
    }
    $('text').addEventListener('paste', (event) => {
      const text = event.clipboardData.getData('text/plain');
      if (!isMessage(text)) return;
      event.preventDefault();
      this.take(new TextEncoder().encode(text));
    });
    $('clear').addEventListener('click', () => {
      this.settle();
      this.write('', '');
      $('text').focus();
    });
  }

  listenForFiles() {
    $('open').addEventListener('click', () => $('file').click());
    $('file').addEventListener('change', ({ target }) => {
      const [file] = target.files;
      if (file) this.takeFile(file);
      target.value = '';
    });
    const hasFile = (event) => event.dataTransfer?.types.includes('Files');
    document.addEventListener('dragover', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      $('mail').classList.add('dropping');
    });
    for (const name of ['dragleave', 'drop']) document.addEventListener(name, () => $('mail').classList.remove('dropping'));
    document.addEventListener('drop', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      this.takeFile(event.dataTransfer.files[0]);
    });
  }

  offerExamples() {
    fill($('example'), h('option', { value: '' }, 'choose \u2026'), EXAMPLES.map(([title], index) => h('option', { value: index }, title)));
    $('example').addEventListener('change', ({ target }) => {
      const example = EXAMPLES[target.value];
      target.value = '';
      if (!example) return;
      this.write(example[1], example[2]);
      this.send();
    });
  }
}
