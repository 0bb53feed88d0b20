// Python of the browser page: one interpreter that answers one request after the other.
import { ConsoleStdout, File, OpenFile, PreopenDirectory, WASI } from "./python/shim/index.js";

const decoder = new TextDecoder();
let printed = "", complaints = "", python;

const folder = async (path, name, url) =>
  new PreopenDirectory(path, new Map([[name, new File(await (await fetch(url)).arrayBuffer(), { readonly: true })]]));

const start = async () => {
  const packed = (await fetch("python/python.bin")).body.pipeThrough(new DecompressionStream("gzip"));
  const type = { headers: { "Content-Type": "application/wasm" } };
  const program = await WebAssembly.compileStreaming(new Response(packed, type));
  const files = [
    new OpenFile(new File([])),
    new ConsoleStdout((bytes) => { printed += decoder.decode(bytes, { stream: true }); }),
    new ConsoleStdout((bytes) => { complaints += decoder.decode(bytes, { stream: true }); }),
    await folder("/usr/local/lib", "python315.zip", "python/library.zip"),
    await folder("/mmbench", "mmbench.zip", "python/mmbench.zip"),
    new PreopenDirectory("/tmp", new Map()),
  ];
  const settings = ["HOME=/tmp", "TMPDIR=/tmp", "PYTHONTZPATH=", "NO_COLOR=1"];
  const system = new WASI(["/usr/local/bin/python.wasm"], settings, files, { debug: false });
  const outside = { wasi_snapshot_preview1: system.wasiImport, host: { call: () => -1 } };
  python = await WebAssembly.instantiate(program, outside);
  system.initialize(python);
  run("import sys; sys.path.insert(0, '/mmbench/mmbench.zip'); import plane");
};

// Run Python, and return what it prints.
const run = (text) => {
  const bytes = new TextEncoder().encode(text);
  const at = python.exports.host_alloc(bytes.length) >>> 0;
  new Uint8Array(python.exports.memory.buffer).set(bytes, at);
  printed = complaints = "";
  if (python.exports.turn(at, bytes.length)) throw new Error(complaints.trim().split("\n").pop());
  return printed;
};

const started = start();
onmessage = async ({ data }) => {
  try {
    await started;
    // a string of JSON is a string of Python
    postMessage(data && JSON.parse(run(`print(plane.answer(${JSON.stringify(JSON.stringify(data))}))`)));
  } catch (error) {
    postMessage({ error: error.message, broken: true });
  }
};
