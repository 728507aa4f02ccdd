// What the server's codes mean, in a support engineer's words.

export const DECISIONS = {
  route: 'Goes there without a person',
  needs_human: 'A person decides',
  not_for_a_queue: 'Not for a queue',
};

export const REASONS = {
  below_threshold: 'It is not sure enough to send this mail on alone.',
  out_of_scope: 'It looks unlike any mail that this router was trained on.',
  safety_queue: 'It may belong to a queue whose mail must not be missed, though another one is likelier.',
  several_intents: 'It may want several things: more than one queue remains possible.',
  too_short: 'There are too few words to judge by.',
  empty_body: 'The mail has no text of its own; only the subject was read.',
  unsupported_language: 'It is in a language that this router does not know.',
  unreadable: 'It could not be read: encrypted or broken.',
  auto_reply: 'It is an automatic reply.',
  bounce: 'It is a report of the mail system about a mail that could not be delivered.',
  truncated: 'It is longer than the limit; the decision stands on the part that was read.',
  queue_disabled: 'The likeliest queue is switched off.',
  suggest_only: 'The likeliest queue is new and only suggested for now.',
};

export const CUTS = {
  quote: 'earlier mail', quoted: 'earlier mail', forward_header: 'header of a forwarded mail', signature: 'signature',
  disclaimer: 'legal notice', banner: 'warning of a mail gateway', delimiter: 'divider', limit: 'past the size limit',
  truncated: 'past the length limit',
};

export const KINDS = { auto_reply: 'an automatic reply', bounce: 'a delivery report', list: 'mail of a list', forwarded: 'a forwarded mail' };

export const MAIL_NOTES = {
  encrypted: 'It is encrypted.',
  truncated: 'A size limit cut text off.',
  kept_whole: 'Everything looked like quotes or a signature, so the whole text was read.',
  charset_guessed: 'Its character set was missing or wrong and was guessed.',
  calendar: 'The text was taken from a meeting request.',
  unreadable: 'Part of it could not be read.',
};

export const VERDICTS = {
  supported: ['Supported', 'the marked words decide far more than others do.'],
  weak: ['Weak', 'the marked words matter more than others, but not by much.'],
  not_supported: ['Not supported', 'taking out any other words does as much. Do not read meaning into the marks.'],
  undecidable: ['Cannot be said', 'there is too little to go by.'],
  too_short: ['Cannot be said', 'the mail is too short to take a part of it at random: it takes ten words, or five sentences where whole ones are taken out.'],
  prior_wins: ['Cannot be said', 'a mail without any text gets this queue at least as surely.'],
};

/** The sentence that goes with every map. */
export const CLUE = 'Attention is a clue, not a proof: it has no sign and knows no queue.';

export const MAP_NOTES = {
  word_counts_decide_too: 'Counts of words decide beside the network; no map shows their part.',
  last_layer_cls_row_only: 'In the last layer only the row of [CLS] reaches the decision; the other rows are greyed.',
  each_window_has_its_own_map: 'The mail is read in overlapping windows. Each has a map of its own.',
  truncated: 'The mail is longer than the limit: its end was not read.',
};

export const EXAMPLES = [
  ['A cold cake', 'Order 48213', 'Hello,\n\nmy eggless cake was supposed to be here at noon. It came at four, cold and squashed on one side.\nCan I get part of my money back?\n\nThe driver was very kind, by the way.\n\nThanks,\nPriya Nair\n\n-- \nPriya Nair\nFlat 2, Mill Lane'],
  ['Two wishes at once', 'Saturday', 'Hi there, where is my order? It should have come this morning.\nIf it is still in the shop, please leave it there and send it on Sunday instead.\nTom'],
  ['An answer below a quote', 'Re: Your order', 'Does the walnut loaf share an oven with the plain one? My son reacts to traces.\n\nOn Mon, 3 Mar 2025 at 10:12, Crumb <hello@crumb.example> wrote:\n> Your order 5512 is on its way and will arrive today.\n> Reply to this mail if anything is late.'],
  ['Hardly any words', '', 'hello??'],
];
