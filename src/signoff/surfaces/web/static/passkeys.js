// Asks an authenticator for a signature, or for a new passkey, before a form is sent. The server
// decides what is signed and checks it again; without this script it refuses the form.
"use strict";
(() => {
  const decode = (text) => Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const known = (list) => (list ?? []).map((each) => ({ ...each, id: decode(each.id) }));

  // What a server and an authenticator exchange, in the JSON form that both standards define.
  const toSign = (options) => ({
    ...options,
    challenge: decode(options.challenge),
    allowCredentials: known(options.allowCredentials),
  });
  const toCreate = (options) => ({
    ...options,
    challenge: decode(options.challenge),
    user: { ...options.user, id: decode(options.user.id) },
    excludeCredentials: known(options.excludeCredentials),
  });
  const reply = (credential, names) => JSON.stringify({
    id: credential.id,
    rawId: encode(credential.rawId),
    type: credential.type,
    response: Object.fromEntries(names.map((name) => [name, encode(credential.response[name])])),
  });

  const ask = async (address, form, button) => {
    const body = new URLSearchParams(new FormData(form, button));
    const response = await fetch(address, { method: "POST", body });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.problem ?? "The server refused this.");
    return answer.options;
  };
  const sign = async (options) => {
    const credential = await navigator.credentials.get({ publicKey: toSign(options) });
    return reply(credential, ["clientDataJSON", "authenticatorData", "signature"]);
  };
  const create = async (options) => {
    const credential = await navigator.credentials.create({ publicKey: toCreate(options) });
    return reply(credential, ["clientDataJSON", "attestationObject"]);
  };

  // Returns whether the form can be sent; false if the user has one more step to take.
  let confirmation = null;
  const register = async (form, button, address) => {
    const { created, confirmation: confirmed } = form.elements;
    if (!created.value) created.value = await create(await ask(`${address}/options`, form, button));
    if (confirmation !== null) {
      confirmed.value = await sign(confirmation);
      return true;
    }
    confirmation = await ask(`${address}/confirmation`, form, button);
    if (confirmation === null) return true;
    // Browsers ask an authenticator only when the user has just done something.
    button.textContent = "Confirm with a passkey that is registered";
    return false;
  };
  const approve = async (form, button, address) => {
    const options = await ask(address, form, button);
    if (options !== null) form.elements.assertion.value = await sign(options);
    return true;
  };

  const explain = (error) => {
    if (error.name === "NotAllowedError") {
      return "Your authenticator did not sign: it was not there, or you canceled.";
    }
    if (error.name === "InvalidStateError") return "This authenticator has a passkey already.";
    return error.message;
  };

  let busy = false;
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const problem = form.querySelector("[data-sign]");
    if (!problem) return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    problem.hidden = true;
    const button = event.submitter ?? form.querySelector("button");
    const act = form.elements.created ? register : approve;
    try {
      if (!(await act(form, button, problem.dataset.sign))) return;
      // A form that a script sends does not contain the button that was pressed.
      if (button.name) {
        const field = Object.assign(document.createElement("input"),
          { type: "hidden", name: button.name, value: button.value });
        form.append(field);
      }
      form.submit();
    } catch (error) {
      problem.textContent = explain(error);
      problem.hidden = false;
    } finally {
      busy = false;
    }
  });
})();
