/**
 * Holds every log line of the whole run against what must stand in none: the keys and tokens that were presented, and the texts that
 * were sent to models and came from them. A line that holds one fails the test it was written in.
 */
import diagnostics from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/** Shorter texts are found in too many words that are none. */
const SHORTEST = 8
/** Long texts of few different characters are made up, and stand for nothing. */
const FEWEST_CHARACTERS = 5
/** So much of a text is looked for: a line may hold only its beginning. */
const LONGEST = 40
/** More are not kept; property tests send them without end. */
const MOST_TEXTS = 50_000
/** Larger bodies are bytes, not words. */
const LARGEST_BODY = 262_144

/** What looks like a secret, whether anybody has presented it or not. What is left of one that was blotted out does not. */
const secretShapes =
  /(?:svc_scoped_|svc_(?!scoped_)|agnt_key-)\w{12}\w{6}|atk_[\w-]{8}\.[\w-]{8}|\bBearer [\w.~+/-]{8}|\/sign-in#[\w-]{20}|\bsk-[\w-]{8}/

/** The files in a stack trace: their names are ours, even where a test uses the same word. */
const stackPlaces = /(?:file:\/\/)?\/[^\s)"]+:\d+:\d+/g

/** By their first characters. */
const texts = new Map<string, Set<string>>()
let textCount = 0
const leaks: string[] = []

/** What the lines so far have given away; it is forgotten with that. */
export function takeLeaks(): string[] {
  return leaks.splice(0)
}

/** Looks at a line of a log. */
export function checkLine(line: string): void {
  const [secret] = secretShapes.exec(line) ?? []
  const found = secret ?? findText(line.replaceAll(stackPlaces, ''))
  if (found !== undefined) leaks.push(`"${found}" stands in the line ${line.trimEnd()}`)
}

/** Looks at what a process has written to its log. */
export function checkLines(output: string): void {
  for (const line of output.split('\n')) checkLine(line)
}

/** No line may hold this from now on. */
export function keepFromLog(text: string): void {
  // Words as they follow each other, for a line may hold any part of them; a single word out of more is no message.
  const runs = text.match(/[\p{L}\p{N} ,'’_-]+/gu) ?? []
  for (const run of runs) {
    const piece = run.trim().slice(0, LONGEST)
    const isText = piece.length >= SHORTEST && new Set(piece).size >= FEWEST_CHARACTERS
    // A text that is a field name of the API may appear in an error that names the field.
    const isTelling = isText && !spokenFields.has(piece) && (runs.length === 1 || piece.includes(' '))
    if (!isTelling || textCount >= MOST_TEXTS) continue
    const start = piece.slice(0, SHORTEST)
    const known = texts.get(start) ?? new Set()
    if (!known.has(piece)) textCount += 1
    texts.set(start, known.add(piece))
  }
}

function findText(line: string): string | undefined {
  for (let at = 0; at + SHORTEST <= line.length; at++) {
    const candidates = texts.get(line.slice(at, at + SHORTEST))
    if (candidates === undefined) continue
    for (const text of candidates) if (line.startsWith(text, at)) return text
  }
  return undefined
}

/** What somebody says stands under these names in every API there is here. */
const spokenFields = new Set(['content', 'text', 'input', 'output', 'arguments', 'instructions', 'result'])

/** Keeps all that is said in a JSON body from the log. */
export function keepBodyFromLog(body: string): void {
  if (body.length > LARGEST_BODY || !/^\s*[{[]/.test(body)) return
  try {
    JSON.parse(body, function takeSpoken(this: unknown, name, value) {
      if (typeof value !== 'string') return value
      // Lists of texts are under the name of their list.
      if (spokenFields.has(name) || (Array.isArray(this) && /\s/.test(value))) keepFromLog(value)
      return value
    })
  } catch {
    // What is no JSON is not taken for a message either.
  }
}

/** Listens to every request that a server of this process receives, however it was sent, and to what `fetch` sends to others. */
export function watchMessages(): void {
  diagnostics.subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    keepCredentials(request)
    if (/json/.test(request.headers['content-type'] ?? '')) keepBody(request)
  })
  const sendOn = globalThis.fetch
  globalThis.fetch = (input, init) => {
    if (typeof init?.body === 'string') keepBodyFromLog(init.body)
    return sendOn(input, init)
  }
}

function keepCredentials({ headers }: IncomingMessage): void {
  const [, token] = /^bearer\s+(\S{16,})$/i.exec(headers.authorization ?? '') ?? []
  const end = token?.slice(-24) ?? ''
  // One that a test has made up of a few characters stands for nothing.
  if (new Set(end).size > 6) keepFromLog(end)
  for (const [, secret = ''] of (headers.cookie ?? '').matchAll(/parley_session=([\w-]+)/g))
    keepFromLog(secret)
}

/** Reads along, whoever reads the body itself, and whether anybody does. */
function keepBody(request: IncomingMessage): void {
  const pieces: Buffer[] = []
  const push = request.push.bind(request)
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null) pieces.push(chunk)
    else keepBodyFromLog(Buffer.concat(pieces).toString())
    return push(chunk, encoding)
  }
}
