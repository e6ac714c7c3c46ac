// A few of the states that ../states.mjs goes through by the hundred.
import assert from "node:assert/strict";
import { goThroughStates } from "../states.mjs";

export default {
  async "what the page hands out reproduces what it shows"(browser, { url }) {
    const { wrong, estimates } = await goThroughStates(browser, url, 5);
    assert.deepEqual(wrong, []);
    assert.ok(estimates >= 1, `only ${estimates} states had an answer to compare`);
    return `${estimates} states with an estimate`;
  },
};
