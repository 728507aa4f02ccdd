// The tabs, and the link to a view. A link says what to show: never a word of a mail.

import { $, say } from './dom.js';

export class Tabs {
  /** `views` by the name of their tab; `routers` adds to a link which router answers. */
  constructor(app, views, routers) {
    Object.assign(this, { app, views, routers, names: Object.keys(views), now: 'why' });
    for (const name of this.names) {
      $(`tab-${name}`).addEventListener('click', () => this.open(name));
      $(`tab-${name}`).addEventListener('keydown', (event) => this.key(event));
    }
    $('link').addEventListener('click', () => this.copyLink());
  }

  open(tab, focus = false) {
    this.now = tab;
    for (const name of this.names) {
      const here = name === tab;
      const button = $(`tab-${name}`);
      button.setAttribute('aria-selected', String(here));
      button.tabIndex = here ? 0 : -1;
      $(name).hidden = !here;
      if (here && focus) button.focus();
    }
    if (this.app.mail) this.views[tab].show(this.app);
  }

  key(event) {
    const { names } = this;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? names.length - 1 : (names.indexOf(this.now) + step + names.length) % names.length;
    if (Number.isNaN(to)) return;
    event.preventDefault();
    this.open(names[to], true);
  }

  async copyLink() {
    const link = remember({ tab: this.now, ...this.routers.view(), ...this.views[this.now].view() });
    const copied = await navigator.clipboard?.writeText(link).then(() => true, () => false);
    $('link').textContent = copied ? 'Copied: the view, not the mail' : 'It is in the address bar';
    say($('link').textContent);
    setTimeout(() => { $('link').textContent = 'Copy link to this view'; }, 2500);
  }

  /** Opens the view that the address names. */
  restore() {
    const view = linked();
    this.routers.wanted = view.router ?? null;
    if (this.names.includes(view.tab)) {
      this.now = view.tab;
      this.views[view.tab].restore(view);
    }
    this.open(this.now);
  }

  /** Another router was chosen: an address with a view keeps it too. */
  rememberRouter() {
    remember({ ...linked(), ...this.routers.view() });
  }
}

function linked() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Puts a view into the address, after the sign that browsers do not send. */
function remember(view) {
  const link = `${location.origin}${location.pathname}#${new URLSearchParams(view)}`;
  history.replaceState(null, '', link);
  return link;
}
