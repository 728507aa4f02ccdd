// Draws /openapi.json. All text goes in as text, never as markup.
"use strict";

const METHODS = ["get", "put", "post", "delete", "patch"];
let api;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Text in which `words between marks` stand as code.
function prose(text, name = "p") {
  const parts = text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
  return element(name, {}, ...parts);
}

function resolved(schema) {
  if (!schema || !schema.$ref) return schema || {};
  const target = schema.$ref.slice(2).split("/").reduce((at, key) => at && at[key], api);
  return { ...target, named: schema.$ref.split("/").pop() };
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf || schema.anyOf;
  if (choices && !schema.type) return schema.named || choices.map((choice) => typeOf(resolved(choice))).join(" | ");
  const types = [schema.type || "any"].flat();
  const name = types.map((type) => (type === "array" && schema.items ? `${typeOf(resolved(schema.items))}[]` : type));
  return schema.named || name.join(" | ");
}

function bounds(schema) {
  const names = { minimum: "at least", maximum: "at most", minLength: "length at least", maxLength: "length at most",
    minItems: "items at least", maxItems: "items at most", pattern: "pattern" };
  return Object.entries(names).filter(([key]) => schema[key] !== undefined).map(([key, words]) => `${words} ${schema[key]}`)
    .join(", ");
}

function fields(given, depth = 0) {
  const schema = resolved(given);
  if (depth > 5) return null;
  const inner = schema.type === "array" ? fields(schema.items, depth) : null;
  if (inner) return inner;
  const list = element("ul", { class: "schema" });
  for (const part of schema.allOf || []) list.append(...(fields(part, depth)?.childNodes || []));
  for (const [name, value] of Object.entries(schema.properties || {})) {
    const field = resolved(value);
    const must = (schema.required || []).includes(name) ? "" : ", optional";
    const limits = bounds(field);
    const line = element("li", {}, element("code", {}, name), " ",
      element("span", { class: "type" }, `${typeOf(field)}${must}${limits ? `, ${limits}` : ""}`),
      field.description ? prose(` ${field.description}`, "span") : null);
    const choices = [field, field.items, ...(field.oneOf || []), ...(field.anyOf || [])].filter(Boolean);
    const below = choices.map((choice) => fields(choice, depth + 1)).find((found) => found && found.childNodes.length);
    if (below) line.append(element("details", {}, element("summary", {}, "fields"), below));
    list.append(line);
  }
  return list.childNodes.length ? list : null;
}

function content(media) {
  return Object.entries(media || {}).map(([type, { schema, example }]) => {
    const block = element("details", {}, element("summary", {}, element("code", {}, type), " ",
      element("span", { class: "type" }, typeOf(resolved(schema)))));
    const tree = fields(schema);
    if (tree) block.append(tree);
    if (example !== undefined) {
      block.open = true;
      block.append(element("pre", {}, typeof example === "string" ? example : JSON.stringify(example, null, 2)));
    }
    return block;
  });
}

function operation(path, method, spec) {
  const id = spec.operationId;
  const section = element("section", { id },
    element("h3", {}, element("span", { class: "method" }, method.toUpperCase()), " ", element("code", {}, path)),
    element("p", {}, element("strong", {}, spec.summary || "")), spec.description ? prose(spec.description) : null);
  if (spec.parameters) {
    const rows = spec.parameters.map((one) => element("tr", {}, element("td", {}, element("code", {}, one.name)),
      element("td", {}, one.in), element("td", { class: "type" }, typeOf(resolved(one.schema))),
      element("td", {}, prose(one.description || "", "span"), " ", bounds(resolved(one.schema)))));
    section.append(element("h4", {}, "Parameters"), element("table", {}, element("tbody", {}, ...rows)));
  }
  if (spec.requestBody) section.append(element("h4", {}, "Body"), ...content(spec.requestBody.content));
  section.append(element("h4", {}, "Answers"));
  for (const [status, answer] of Object.entries(spec.responses || {})) {
    section.append(element("div", {}, element("code", {}, status), " ", prose(answer.description || "", "span"),
      ...content(answer.content)));
  }
  return section;
}

async function draw() {
  const [contents, main] = ["contents", "operations"].map((id) => document.getElementById(id));
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`openapi.json answers ${answer.status}`);
  api = await answer.json();
  const intro = element("div", {}, element("h1", {}, `${api.info.title} ${api.info.version}`));
  for (const paragraph of api.info.description.split("\n\n")) intro.append(prose(paragraph));
  intro.append(element("p", {}, element("a", { href: "openapi.json" }, "openapi.json")));
  const drawn = [intro];
  for (const tag of api.tags) {
    contents.append(element("h2", {}, tag.name));
    drawn.push(element("h2", {}, tag.name), prose(tag.description || ""));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const method of METHODS.filter((name) => methods[name] && methods[name].tags.includes(tag.name))) {
        const link = element("a", { href: `#${methods[method].operationId}` },
          element("span", { class: "method" }, method.toUpperCase()), " ", path);
        contents.append(link);
        drawn.push(operation(path, method, methods[method]));
      }
    }
  }
  main.replaceChildren(...drawn);
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

draw().catch((error) => {
  document.getElementById("operations").replaceChildren(element("p", { class: "warning" }, `The document cannot be shown: ${error.message}`));
});
