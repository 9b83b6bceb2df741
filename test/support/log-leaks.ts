/**
 * Checks every log line of the test run for secrets: presented keys and tokens, and texts sent to or received from
 * models. A line that contains one fails the test that wrote it.
 */
import diagnostics from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/** The minimum length of a text, because shorter ones occur in ordinary words. */
const SHORTEST = 8
/** The minimum number of different characters, because tests send long texts of few characters as filler. */
const FEWEST_CHARACTERS = 5
/** The length of the searched prefix, because a line may contain only the beginning of a text. */
const LONGEST = 40
/** The maximum number of remembered texts, because property tests send very many. */
const MOST_TEXTS = 50_000
/** The size from which a body counts as binary. */
const LARGEST_BODY = 262_144

/** Patterns of secrets, whether presented or not; redacted secrets do not match. */
const secretShapes =
  /(?:svc_scoped_|svc_(?!scoped_)|agnt_key-)\w{12}\w{6}|atk_[\w-]{8}\.[\w-]{8}|\bBearer [\w.~+/-]{8}|\/sign-in#[\w-]{20}|\bsk-[\w-]{8}/

/** File positions in stack traces, which may contain a word that a test uses as text. */
const stackPlaces = /(?:file:\/\/)?\/[^\s)"]+:\d+:\d+/g

/** Texts that must not be logged, keyed by their first characters. */
const texts = new Map<string, Set<string>>()
let textCount = 0
const leaks: string[] = []

/** Returns the leaks found so far and clears them. */
export function takeLeaks(): string[] {
  return leaks.splice(0)
}

/** Checks one log line. */
export function checkLine(line: string): void {
  const [secret] = secretShapes.exec(line) ?? []
  const found = secret ?? findText(line.replaceAll(stackPlaces, ''))
  if (found !== undefined) leaks.push(`"${found}" is in the line ${line.trimEnd()}`)
}

/** Checks the log of a process. */
export function checkLines(output: string): void {
  for (const line of output.split('\n')) checkLine(line)
}

/** Forbids the text in all further log lines. */
export function keepFromLog(text: string): void {
  // Texts are split into runs of words, because a line may contain any part; a single word of a longer text is
  // ignored.
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

/** The JSON fields that contain messages in every API. */
const spokenFields = new Set(['content', 'text', 'input', 'output', 'arguments', 'instructions', 'result'])

/** Forbids all messages in a JSON body. */
export function keepBodyFromLog(body: string): void {
  if (body.length > LARGEST_BODY || !/^\s*[{[]/.test(body)) return
  try {
    JSON.parse(body, function takeSpoken(this: unknown, name, value) {
      if (typeof value !== 'string') return value
      // For list items, JSON.parse passes an index instead of the field name, so any text with spaces counts as a message.
      if (spokenFields.has(name) || (Array.isArray(this) && /\s/.test(value))) keepFromLog(value)
      return value
    })
  } catch {
    // A body that is not JSON contains no message.
  }
}

/**
 * Reads every request that a server of this process receives, and every body that this process sends with `fetch`.
 */
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
  // A token of few different characters is a placeholder of a test.
  if (new Set(end).size > 6) keepFromLog(end)
  for (const [, secret = ''] of (headers.cookie ?? '').matchAll(/parley_session=([\w-]+)/g))
    keepFromLog(secret)
}

/** Copies the request body as it arrives, whether or not the server reads it. */
function keepBody(request: IncomingMessage): void {
  const pieces: Buffer[] = []
  const push = request.push.bind(request)
  request.push = (chunk: Buffer | null, encoding) => {
    if (chunk !== null) pieces.push(chunk)
    else keepBodyFromLog(Buffer.concat(pieces).toString())
    return push(chunk, encoding)
  }
}
