// Which router answers, where the server has several: a choice in the header that goes along with every request.

import { choice, fill } from './dom.js';
import { get, useRouter } from './api.js';

export class Routers {
  /** `changed` is called when another router was chosen. */
  constructor(box, changed) {
    Object.assign(this, { box, changed, wanted: null, name: null, known: false, lost: false });
  }

  /** Learns, once, which routers there are. One that a link names is taken where the server has it, otherwise the default. */
  async load() {
    if (this.known) return;
    // A server that lists none has one.
    const { routers } = await get('v1/routers').catch((problem) => {
      if (problem.missing) return { routers: [] };
      throw problem;
    });
    this.known = true;
    const there = routers.some(({ name }) => name === this.wanted);
    this.lost = this.wanted !== null && !there;
    if (routers.length < 2) return;
    this.take(there ? this.wanted : (routers.find((router) => router.default) ?? routers[0]).name);
    const said = ({ name, version, ...router }) => `${name}${version ? '' : ' (not loaded)'}${router.default ? ' (default)' : ''}`;
    fill(this.box, choice('Router', routers.map((router) => [router.name, said(router), !router.version]), this.name, (name) => {
      this.take(name);
      this.changed();
    }));
  }

  take(name) {
    this.box.hidden = false;
    this.name = name;
    useRouter(name);
  }

  /** What a link keeps: the name alone. */
  view() {
    return this.name === null ? {} : { router: this.name };
  }
}
