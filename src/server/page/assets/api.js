// Asking the server. Mail goes in the body, never in an address; what to show goes in the query.

/** How often a server that is busy is asked again, at the times that it names. */
const MOST_TRIES = 3;

/** Refusals that say nothing of the request itself. One that ran out of time is not among them: it would again. */
const FULL = ['queue_full', 'explanations_full'];

/** What is the same for every router, and takes no name of one. */
const OF_NO_ROUTER = ['v1/read', 'v1/routers'];

let router = null;
let key = '';
let askForKey = null;
let asking = null;

/** From now on every request is for the router of this name; `null` leaves it to the server. */
export function useRouter(name) {
  router = name;
}

/** What `ask` does when the server wants a key: shows a field and answers with a promise of the key. */
export function onKeyWanted(ask) {
  askForKey = ask;
}

/** An answer that is not what was asked for, with the server's own words. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    Object.assign(this, { status, code: body.code, remedy: body.remedy, valid: body.valid || [] });
  }
  /** The endpoint is not there: an older server, or one with it switched off. */
  get missing() {
    return this.status === 404 || this.status === 405 || this.status === 501;
  }
}

async function ask(path, init, tries = 0) {
  const headers = { ...init.headers };
  if (key) headers.authorization = `Bearer ${key}`;
  let reply;
  try {
    reply = await fetch(path, { ...init, headers, cache: 'no-store', credentials: 'same-origin', redirect: 'error' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { detail: 'The server cannot be reached.', remedy: 'Check that it still runs, then try again.' });
  }
  if (reply.status === 401 && askForKey) {
    // Requests that are refused together wait for the same key.
    asking ??= askForKey(Boolean(key)).finally(() => { asking = null; });
    key = await asking;
    return ask(path, init);
  }
  const body = await reply.json().catch((error) => {
    if (error.name === 'AbortError') throw error;
    return {};
  });
  if (FULL.includes(body.code) && tries < MOST_TRIES) {
    await pause(Math.min(5, Number(reply.headers.get('retry-after')) || 1), init.signal);
    return ask(path, init, tries + 1);
  }
  if (!reply.ok) throw new Problem(reply.status, body);
  return body;
}

function pause(seconds, signal) {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, seconds * 1000);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      failed(signal.reason);
    });
  });
}

export const get = (path) => ask(withQuery(path, {}), { method: 'GET' });

/** Sends JSON. */
export function postJson(path, body, parameters = {}, signal) {
  return ask(withQuery(path, parameters), {
    method: 'POST', signal, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
}

/** Sends a mail: the raw message while nobody has changed it, else its two fields. */
export function postMail(path, mail, parameters = {}, signal) {
  if (!mail.raw) return postJson(path, { subject: mail.subject, text: mail.text }, parameters, signal);
  return ask(withQuery(path, parameters), {
    method: 'POST', signal, headers: { 'content-type': 'message/rfc822' }, body: mail.raw,
  });
}

function withQuery(path, parameters) {
  const named = router === null || OF_NO_ROUTER.includes(path) ? {} : { router };
  const query = new URLSearchParams({ ...parameters, ...named }).toString();
  return query ? `${path}?${query}` : path;
}
