import assert from "node:assert/strict";
import test from "node:test";
import { followAddress } from "../../web/src/address.js";

const schema = { options: [], byName: new Map() };

/** What a store is told that was made from one hash while the address is another. */
function replaced(made, now) {
  const states = [];
  const store = { subscribe() {}, replace: (state) => states.push(state) };
  Object.assign(globalThis, { location: { hash: now }, addEventListener() {} });
  followAddress(store, schema, { model: "example" }, made);
  return states;
}

test("an address that changed while the page was built is read as soon as it is followed", () => {
  assert.deepEqual(replaced("v=1", ""), [{ values: { model: "example" } }]);
  assert.equal(replaced("", "#v=1").length, 1);
});

test("an address that the state was made from is not read again", () => {
  assert.deepEqual(replaced("v=1", "#v=1"), []);
  assert.deepEqual(replaced("", ""), []);
});
