// Building elements. Text becomes text nodes; nothing here ever parses markup.

/** An element with attributes (`onclick` and friends are listeners, `style` sets properties) and children. */
export function h(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split('.');
  const element = document.createElement(tag || 'div');
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    else if (key in element && typeof value === 'boolean') element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (id) => document.getElementById(id);

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A labelled `select`; `options` are [value, label]. */
export function choice(label, options, value, onchange) {
  const select = h('select', { onchange: (event) => onchange(event.target.value) },
    options.map(([id, text, disabled]) => h('option', { value: id, disabled: Boolean(disabled) }, text)));
  select.value = value;
  return h('label.select', {}, label + ' ', select);
}

/** A switch that says of itself whether it is on. */
export function toggle(label, on, onchange, title) {
  return h('button.toggle', { type: 'button', 'aria-pressed': String(on), title,
    onclick: (event) => {
      const now = event.currentTarget.getAttribute('aria-pressed') !== 'true';
      event.currentTarget.setAttribute('aria-pressed', String(now));
      onchange(now);
    } }, label);
}

/** Enter and space press a span that acts as a button: unlike a real one it may run over several lines. */
export function pressable(element, press) {
  element.addEventListener('click', press);
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    press(event);
  });
  return element;
}

/** Tells a screen reader something that others see. */
export function say(text) {
  $('said').textContent = text;
}
