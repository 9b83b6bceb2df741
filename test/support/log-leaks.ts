/** Detects log lines that contain keys, tokens, or messages to or from models. */
import diagnostics from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/** Minimum length of a text to search for; shorter texts occur in ordinary log lines. */
const SHORTEST = 8
/** Minimum number of different characters in a text; tests use less varied texts as filler. */
const FEWEST_CHARACTERS = 5
/** Number of characters at the start of a text to search for; the log may truncate the text. */
const LONGEST = 40
/** Maximum number of texts to search for; property tests send many. */
const MOST_TEXTS = 50_000
/** Maximum length of a body that is searched for messages, in characters. */
const LARGEST_BODY = 262_144

/** Matches keys and tokens, but not redacted ones. */
const secretShapes =
  /(?:svc_scoped_|svc_(?!scoped_)|agnt_key-)\w{12}\w{6}|atk_[\w-]{8}\.[\w-]{8}|vst_\w{24}\.\d+\.[\w-]{8}|\bBearer [\w.~+/-]{8}|\/sign-in#[\w-]{20}|\bsk-[\w-]{8}/

/** Matches file positions in stack traces, which may contain a text that a test sends. */
const stackPlaces = /(?:file:\/\/)?\/[^\s)"]+:\d+:\d+/g

/** The texts that must not be logged, by their first `SHORTEST` characters. */
const texts = new Map<string, Set<string>>()
let textCount = 0
const leaks: string[] = []

/** Returns the leaks found so far, and forgets them. */
export function takeLeaks(): string[] {
  return leaks.splice(0)
}

export function checkLine(line: string): void {
  const [secret] = secretShapes.exec(line) ?? []
  const found = secret ?? findText(line.replaceAll(stackPlaces, ''))
  if (found !== undefined) leaks.push(`"${found}" is in the line ${line.trimEnd()}`)
}

export function checkLines(output: string): void {
  for (const line of output.split('\n')) checkLine(line)
}

/** Adds a text that later log lines must not contain. */
function forbidInLog(text: string): void {
  // Splits the text at punctuation, because a log line may contain only a part of it.
  const runs = text.match(/[\p{L}\p{N} ,'’_-]+/gu) ?? []
  for (const run of runs) {
    const piece = run.trim().slice(0, LONGEST)
    const isText = piece.length >= SHORTEST && new Set(piece).size >= FEWEST_CHARACTERS
    // Ignores API field names, which error messages may contain, and single words of a longer text.
    const isTelling =
      isText &&
      !spokenFields.has(piece) &&
      !isInheritedName(piece) &&
      (runs.length === 1 || piece.includes(' '))
    if (!isTelling || textCount >= MOST_TEXTS) continue
    const start = piece.slice(0, SHORTEST)
    const known = texts.get(start) ?? new Set()
    if (!known.has(piece)) textCount += 1
    texts.set(start, known.add(piece))
  }
}

/** The properties that every object inherits. Property tests send these names, whole or truncated. */
const inheritedNames = Object.getOwnPropertyNames(Object.prototype)

function isInheritedName(text: string): boolean {
  return inheritedNames.some((name) => name.startsWith(text))
}

function findText(line: string): string | undefined {
  for (let at = 0; at + SHORTEST <= line.length; at++) {
    const candidates = texts.get(line.slice(at, at + SHORTEST))
    if (candidates === undefined) continue
    for (const text of candidates) if (line.startsWith(text, at)) return text
  }
  return undefined
}

/** The JSON fields that contain messages in any of the APIs. */
const spokenFields = new Set(['content', 'text', 'input', 'output', 'arguments', 'instructions', 'result'])

/** Adds the messages in a JSON body as texts that later log lines must not contain. */
export function forbidMessagesInLog(body: string): void {
  if (body.length > LARGEST_BODY || !/^\s*[{[]/.test(body)) return
  try {
    JSON.parse(body, function takeSpoken(this: unknown, name, value) {
      if (typeof value !== 'string') return value
      // An item of a list has no field name, so any item with a space is treated as a message.
      if (spokenFields.has(name) || (Array.isArray(this) && /\s/.test(value))) forbidInLog(value)
      return value
    })
  } catch {
    // Ignores bodies that are not JSON.
  }
}

/**
 * Adds the messages and credentials of all requests to this process's servers, and the messages in all bodies
 * that `fetch` sends, as texts that later log lines must not contain.
 */
export function watchMessages(): void {
  diagnostics.subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    keepCredentials(request)
    if (/json/.test(request.headers['content-type'] ?? '')) keepBody(request)
  })
  const sendOn = globalThis.fetch
  globalThis.fetch = (input, init) => {
    if (typeof init?.body === 'string') forbidMessagesInLog(init.body)
    return sendOn(input, init)
  }
}

function keepCredentials({ headers }: IncomingMessage): void {
  const [, token] = /^bearer\s+(\S{16,})$/i.exec(headers.authorization ?? '') ?? []
  const end = token?.slice(-24) ?? ''
  // Ignores placeholder tokens, which contain only a few different characters.
  if (new Set(end).size > 6) forbidInLog(end)
  for (const [, secret = ''] of (headers.cookie ?? '').matchAll(/parley_session=([\w-]+)/g))
    forbidInLog(secret)
}

/** Adds the messages of a request body as texts that later log lines must not contain. */
function keepBody(request: IncomingMessage): void {
  const pieces: Buffer[] = []
  const push = request.push.bind(request)
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null) pieces.push(chunk)
    else forbidMessagesInLog(Buffer.concat(pieces).toString())
    return push(chunk, encoding)
  }
}
