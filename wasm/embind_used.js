// For emcc, beside its own library (--js-library): embind registers a converter for every type that C++ knows, and brings the
// JavaScript of each. The bindings pass texts and views of memory: the converters of other types are left out, which the page would
// carry otherwise. A binding that came to use one of them would be told of an unbound type as it loads.
/* global LibraryManager, mergeInto */
// biome-ignore lint/complexity/useArrowFunction: emcc puts its name between "function" and the parameters; an arrow has no place for it.
const nothing = function () {};
const names = "bigint bool float integer std_wstring void".split(" ");
const entries = names.flatMap((name) => [
  [`_embind_register_${name}`, nothing],
  [`_embind_register_${name}__deps`, []],
]);
mergeInto(LibraryManager.library, Object.fromEntries(entries));
