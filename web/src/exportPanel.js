// The job in another tool's words: a script, a configuration, a probe for one's own card. Shown on demand; the reader writes it.
import { h, setText } from "./dom.js";
import { saveText } from "./savePage.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { shorten } from "./shorten.js";

function createArea() {
  const label = t("export.text");
  const attributes = { class: "field code", rows: "12", readonly: true, spellcheck: "false", "aria-label": label };
  return h("textarea", { ...attributes, "data-testid": "export-text" });
}

/** shown() → {values, model, assumed} of the job that is shown, or null; importer as importer.js has it; copyOut(text, kind) copies. */
export function createExport({ importer, shown, copyOut }) {
  const area = createArea();
  const choice = { class: "field", "aria-label": t("export.format"), onchange: write, "data-testid": "export-format" };
  const select = h("select", choice);
  const lacks = h("ul", { class: "hint", hidden: true, "data-testid": "export-lacks" });
  const none = h("p", { class: "hint", role: "status" });
  const copy = button(t("copy.snippet"), () => copyOut(area.value, "file"), "export-copy");
  const save = button(t("export.save"), () => saveText(file, whole), "export-save");
  const node = h("div", { class: "stack export", hidden: true, "data-testid": "export-box" });
  node.append(h("div", { class: "row" }, select, copy, save), none, area, lacks);
  const offer = createOffer(select, importer.own);
  let file = "";
  let whole = "";
  let round = 0;

  async function write() {
    if (node.hidden || !select.value) return;
    round += 1;
    const mine = round;
    offer();
    const job = shown();
    const written = job && (await writtenAs(select.value, job, importer));
    if (mine !== round || written === undefined) return;
    const isThere = typeof written?.text === "string";
    file = isThere ? written.file : "";
    whole = isThere ? written.text : "";
    area.value = isThere ? (written.diff ?? whole) : "";
    area.hidden = copy.hidden = !area.value;
    save.hidden = !isThere;
    const isSame = isThere && written.diff === "" && written.lacks.length === 0;
    setText(none, isSame ? t("export.same", { file }) : isThere ? "" : t("export.none"));
    lacks.replaceChildren(...(isThere ? written.lacks : []).map((text) => h("li", {}, text)));
    lacks.hidden = lacks.childElementCount === 0;
  }

  async function fill() {
    if (select.options.length > 0) return;
    const formats = await importer.formats();
    if (!Array.isArray(formats)) return setText(none, said(formats?.issues?.[0]?.message) ?? t("export.none"));
    select.append(...formats.map(({ name, what }) => h("option", { value: name }, what)));
    select.append(h("option", { value: "probe" }, t("export.probe")));
  }

  async function onclick() {
    node.hidden = !node.hidden;
    opener.setAttribute("aria-expanded", String(!node.hidden));
    if (node.hidden) return;
    await fill();
    await write();
  }
  const opener = button(t("export.label"), onclick, "export");
  opener.setAttribute("aria-expanded", "false");
  return { node, button: opener, refresh: write };
}

/** The file that the job came from is offered first, with the lines that are other now. */
function createOffer(select, own) {
  const option = h("option", { value: "patch" });
  return () => {
    const name = own.name();
    setText(option, t("export.patch", { file: shorten(name ?? "", 40) }));
    if (!name) return option.remove();
    if (option.parentNode) return;
    select.prepend(option);
    select.value = "patch";
  };
}

async function writtenAs(format, { values, model, assumed }, importer) {
  if (format !== "patch") return importer.write(format, values, model, assumed);
  const written = await importer.own.patch(values);
  return written?.text ? written : null;
}

const button = (words, onclick, testid) =>
  h("button", { type: "button", class: "button small", "data-testid": testid, onclick }, words);
