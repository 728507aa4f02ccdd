// The page itself: a mail goes in, its decision and the views of it come out.

import { $, fill, h } from './dom.js';
import { Problem, get, onKeyWanted, postMail } from './api.js';
import { Compare } from './compare.js';
import { showDecision } from './decision.js';
import { Form } from './form.js';
import { Inside } from './inside.js';
import { Routers } from './routers.js';
import { Tabs } from './tabs.js';
import { readAsHtml } from './text.js';
import { Why } from './why.js';
import { CUTS } from './words.js';

/** What is shown: the mail as sent, its decision, and where the server says its words stand. */
const app = { mail: null, decision: null, look: null, lookProblem: null, model: null, names: new Map() };
let latest = 0;
let greeted = 0;

app.name = (id) => app.names.get(id) ?? id;

app.showDecision = (decision, before) => showDecision(app, decision, before);

/** A problem in the server's words. */
app.complain = (box, problem) => fill(box, h('p.banner.bad', { role: 'alert' },
  h('b', {}, (problem.message || String(problem)).replace(/^./, (first) => first.toUpperCase()).replace(/\.?$/, '.')), problem.remedy ? ` ${problem.remedy}` : null));

/** Parts of the mail that were not read, greyed, with the reason. */
app.unreadBlocks = (text = app.look?.text) => {
  const { skipped = [], unread = [] } = text ?? {};
  return [...skipped, ...unread.map((part) => ({ ...part, why: 'truncated' }))].map((part) => ({ ...part,
    make: () => h('span.unread', {}, h('span.tag', {}, `${CUTS[part.why] ?? part.why}, not read`)) }));
};

const routers = new Routers($('router'), () => {
  tabs.rememberRouter();
  greet();
});
const views = { why: new Why($('why'), app), inside: new Inside($('inside'), app), compare: new Compare($('compare'), app) };
const tabs = new Tabs(app, views, routers);
const form = new Form({ send, failed: (problem) => app.complain($('decision'), problem), edits: () => app.mail !== null });

async function send() {
  form.settle();
  if (form.message) return form.take(form.message);
  const { mail } = form;
  if (!mail.raw && form.empty) return $('text').focus();
  const run = ++latest;
  $('decision').setAttribute('aria-busy', 'true');
  $('send').disabled = true;
  try {
    const decision = await postMail('v1/route', mail);
    if (run !== latest) return;
    const look = await postMail('v1/attention', mail, { offsets: 'utf16' }).catch((problem) => problem);
    if (run !== latest) return;
    const unreadable = look instanceof Error;
    mail.html = !unreadable && readAsHtml(mail.text, look.units);
    Object.assign(app, { mail, decision, look: unreadable ? null : look, lookProblem: unreadable ? look.message : null });
    Object.values(views).forEach((view) => view.forget());
    app.showDecision(decision);
    $('results').hidden = false;
    tabs.open(tabs.now);
  } catch (problem) {
    if (run === latest) app.complain($('decision'), problem);
  } finally {
    if (run === latest) {
      $('send').disabled = false;
      $('decision').removeAttribute('aria-busy');
    }
  }
}

// A server that wants a key, and one that is not ready yet.

onKeyWanted((refused) => new Promise((done) => {
  const asked = $('key-form');
  asked.hidden = false;
  $('key').value = '';
  $('key').setAttribute('aria-invalid', String(refused));
  $('key').focus();
  asked.onsubmit = (event) => {
    event.preventDefault();
    asked.hidden = true;
    done($('key').value);
    $('key').value = '';
  };
}));

/** Learns whom the page speaks to: at the start, and when another router was chosen, which then gets the mail too. */
async function greet() {
  const run = ++greeted;
  $('send').disabled = true;
  while (run === greeted) {
    try {
      await routers.load();
      const [model, { queues }] = [await get('v1/model'), await get('v1/queues')];
      if (run !== greeted) return;
      app.model = model;
      app.names = new Map(queues.map(({ id, name }) => [id, name]));
      const { encoder, router, device } = model;
      // The choice beside it names the router already, unless it goes by another name there.
      $('model').textContent = `${router === routers.name ? '' : `Router ${router}, `}${encoder.layers} layers of ${encoder.heads} heads, on ${device}${routers.lost ? '. The router that the link names is not on this server' : ''}`;
      routers.lost = false;
      $('send').disabled = false;
      return app.mail ? send() : undefined;
    } catch (problem) {
      if (run !== greeted) return;
      $('model').textContent = problem instanceof Problem ? problem.message : String(problem);
      await new Promise((done) => setTimeout(done, 1500));
    }
  }
}

$('send').disabled = true;
tabs.restore();
greet();
