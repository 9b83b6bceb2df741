/**
 * A scripted OpenAI-compatible server, run as a second process: `node test/support/upstream.ts [--port N] [--no-log]` prints
 * `listening <port>`.
 *
 * Without a script it answers as a good server would. Directives `{{up:name value}}` change that. They are read from the last
 * user message (or the `input` of embeddings), so they pass through whatever stands in front; `PUT /__script` sets them for
 * requests that carry no text. A value may hold JSON. N counts events; where N is left out it is 0.
 *
 * What is answered
 *   text T, chunks N, reasoning T, tool NAME {json}   the words; N pieces of text; reasoning_content; a tool call (repeatable)
 *   usage always|never                                otherwise as `stream_options.include_usage` asks
 *   status N, body T, message T, retry-after T        an error, or T as the whole body
 *   redirect URL, type T, header NAME: T              307; another content type; one more header (repeatable)
 *   no-finish, no-done, no-role                       what a stream leaves out
 *   error-frame N, bad-json N, half-line N, giant N   after N events: an error event, broken JSON, half a line and the end;
 *                                                     a first event of N bytes
 *   crlf, comments, python, tight                     line ends, pings, JSON as Python prints it, no space after `data:`
 * How it is sent
 *   slow-head MS, delay MS, batch N                   wait before the head, between writes; events per write
 *   hints                                             an informational 103 before the head
 *   hang, reset, close                                before the head: nothing, RST, FIN
 *   hang-after N, reset-after N, cut-off N, end-after N   mid-stream (cut-off: FIN without the end; also for JSON: half of it)
 *   drip, cut SEED                                    one byte a write; cut at points chosen by SEED
 *   until-close                                       the body ends with the connection, without chunks or a length
 *   flood BYTES                                       events without end until BYTES are out; waits for the reader
 * When
 *   first N                                           the other directives hold for the first N requests with this text
 *
 * What it saw
 *   GET /__log, DELETE /__log                         the requests; forget them, the scripts and the counts
 *   GET /__log/wait?text=T&path=P                     waits for a request that holds T
 *   GET /__log/wait-closed?id=I                       waits until request I's connection or answer is over
 *   GET /__log/wait-stalled?id=I&ms=N                 waits until a write of I has been stuck for N ms, or I is over
 *   PUT /__script {path, text, times?}                directives for requests on a path
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON body, or its text where it is none; null without a body. */
  readonly body: unknown
  /** Counts the connections, so that reuse shows. */
  readonly connection: number
  /** Bytes of the answer's body handed to the socket so far. */
  sentBytes: number
  /** How it came to its end: a whole answer, a fault from the script, or the client that left; null while it runs. */
  endedBy: 'answer' | 'script' | 'client' | null
  /** Unix milliseconds of that end. */
  endedAt: number | null
}

/** The directives that hold for one request, and the text around them. */
class Script {
  readonly rest: string
  private readonly directives: { name: string; value: string }[] = []

  constructor(text: string) {
    let rest = ''
    let start = 0
    for (let open = text.indexOf('{{up:'); open !== -1; open = text.indexOf('{{up:', start)) {
      rest += text.slice(start, open)
      start = findClose(text, open)
      const [, name = '', value = ''] = /^([a-z-]+)\s*([\s\S]*)$/.exec(text.slice(open + 5, start - 2)) ?? []
      this.directives.push({ name, value })
    }
    this.rest = (rest + text.slice(start)).trim()
  }

  has(name: string): boolean {
    return this.directives.some((directive) => directive.name === name)
  }

  all(name: string): string[] {
    return this.directives.filter((directive) => directive.name === name).map(({ value }) => value)
  }

  text(name: string): string | undefined {
    return this.all(name)[0]
  }

  /** The number behind a directive: 0 when it has none, undefined when the directive is absent. */
  number(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : Number(value)
  }
}

/** The place after the braces that close those at `open`; a value may hold braces, as long as they are in pairs. */
function findClose(text: string, open: number): number {
  let depth = 0
  for (let place = open; place < text.length; place++) {
    if (text[place] === '{') depth++
    if (text[place] === '}' && --depth === 0) return place + 1
  }
  return text.length
}

type Json = Record<string, unknown>

interface ChatBody extends Json {
  messages?: { role?: string; content?: unknown }[]
}

/** What will be sent: worked out once for each different request, so that benches measure the sender and not the script. */
interface Plan {
  readonly script: Script
  readonly status: number
  readonly headers: Record<string, string>
  /** The body, event by event where it is a stream. */
  readonly parts: readonly string[]
  readonly isStream: boolean
}

const seenRequests: SeenRequest[] = []
const waiters = new Set<() => void>()
const stuckSince = new Map<number, number>()
const plans = new Map<string, Plan>()
const firstCounts = new Map<string, number>()
const pathScripts = new Map<string, { text: string; times: number }>()
const connections = new WeakMap<object, number>()
let requestCount = 0
let connectionCount = 0

const { values: settings } = parseArgs({
  options: { port: { type: 'string', default: '0' }, 'no-log': { type: 'boolean', default: false } },
})

// -- What is answered --------------------------------------------------------------------------------------------------

function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: Json) => part.text ?? part).join(' ') : ''
}

function scriptText(body: Json): string {
  const { messages, input } = body as ChatBody
  return toText(messages?.findLast((message) => message.role === 'user')?.content ?? input)
}

function toPlan(path: string, body: Json, text: string): Plan {
  const script = new Script(text)
  const status = script.number('status') ?? (script.has('redirect') ? 307 : 200)
  const isStream =
    status < 300 && path === '/v1/chat/completions' && body.stream === true && !script.has('body')
  const headers: Record<string, string> = {
    'content-type':
      script.text('type') ?? (isStream ? 'text/event-stream; charset=utf-8' : 'application/json'),
  }
  const location = script.text('redirect')
  if (location !== undefined) headers.location = location
  const retryAfter = script.text('retry-after')
  if (retryAfter !== undefined) headers['retry-after'] = retryAfter
  for (const header of script.all('header')) {
    const [name = '', ...value] = header.split(':')
    headers[name] = value.join(':').trim()
  }
  const parts = isStream
    ? renderEvents(body, script)
    : [script.text('body') ?? renderJson(path, status, body, script)]
  return { script, status, headers, parts, isStream }
}

function dump(value: unknown, script: Script): string {
  return script.has('python') ? dumpAsPython(value) : JSON.stringify(value)
}

/** As Python's `json.dumps` does: a space after each comma and colon, and nothing but ASCII. */
function dumpAsPython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(dumpAsPython).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return `{${members.map(([name, member]) => `${dumpAsPython(name)}: ${dumpAsPython(member)}`).join(', ')}}`
  }
  const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, toEscape)
}

function renderJson(path: string, status: number, body: Json, script: Script): string {
  if (status >= 300) return dump({ error: scriptedError(script) }, script)
  if (path === '/v1/chat/completions') return dump(toCompletion(body, script), script)
  if (path === '/v1/embeddings') return dump(toEmbeddings(body), script)
  return dump({ object: 'list', data: listedModels }, script)
}

function scriptedError(script: Script): Json {
  return {
    message: script.text('message') ?? 'scripted failure',
    type: 'scripted',
    param: null,
    code: 'scripted',
  }
}

const listedModels = [
  { id: 'up-chat', object: 'model', created: 1_700_000_000, owned_by: 'upstream', context_length: 8192 },
  { id: 'up-small', object: 'model', created: 1_700_000_001, owned_by: 'upstream', max_model_len: 2048 },
  { id: 'up-embedding', object: 'model', created: 1_700_000_002, owned_by: 'upstream' },
]

/** What the assistant says: pieces of text and reasoning, and tool calls; after a tool's result, the result. */
function toReply(body: Json, script: Script): { pieces: string[]; reasoning: string[]; calls: string[][] } {
  const words = (text: string) => text.match(/\s*\S+/g) ?? []
  const last = (body as ChatBody).messages?.at(-1)
  if (last?.role === 'tool')
    return { pieces: words(`Tool said: ${toText(last.content)}`), reasoning: [], calls: [] }
  const calls = script.all('tool').map((call) => /^(\S+)\s*([\s\S]*)$/.exec(call)?.slice(1) ?? [])
  const count = script.number('chunks')
  const text =
    script.text('text') ?? (calls.length > 0 ? '' : `Upstream heard: ${new Script(scriptText(body)).rest}`)
  const pieces = count === undefined ? words(text) : Array.from({ length: count }, (_, index) => `w${index} `)
  return { pieces, reasoning: words(script.text('reasoning') ?? ''), calls }
}

function toUsage(body: Json, pieces: readonly string[]): Json {
  const prompt = ((body as ChatBody).messages ?? []).flatMap((message) =>
    toText(message.content).split(/\s+/),
  ).length
  return { prompt_tokens: prompt, completion_tokens: pieces.length, total_tokens: prompt + pieces.length }
}

function toToolCalls(calls: string[][]): Json[] {
  return calls.map(([name, json], index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: json || '{}' },
  }))
}

function toCompletion(body: Json, script: Script): Json {
  const { pieces, reasoning, calls } = toReply(body, script)
  const message = {
    role: 'assistant',
    content: pieces.length === 0 ? null : pieces.join(''),
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    ...(calls.length > 0 && { tool_calls: toToolCalls(calls) }),
  }
  return {
    id: 'chatcmpl-up',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: body.model,
    choices: indexes(body).map((index) => ({
      index,
      message,
      finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
    })),
    usage: toUsage(body, pieces),
  }
}

function indexes(body: Json): number[] {
  return Array.from({ length: typeof body.n === 'number' ? body.n : 1 }, (_, index) => index)
}

function toEmbeddings(body: Json): Json {
  const inputs = Array.isArray(body.input) ? body.input : [body.input]
  const width = typeof body.dimensions === 'number' ? body.dimensions : 8
  const data = inputs.map((input, index) => {
    const vector = Float32Array.from({ length: width }, (_, place) => Math.sin(String(input).length + place))
    const embedding =
      body.encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
    return { object: 'embedding', index, embedding }
  })
  return { object: 'list', data, model: body.model, usage: { prompt_tokens: 1, total_tokens: 1 } }
}

/** The deltas of a reply, in the order a server sends them. */
function toDeltas(body: Json, script: Script): Json[] {
  const { pieces, reasoning, calls } = toReply(body, script)
  const toolDeltas = toToolCalls(calls).flatMap((call, index) => {
    const { name, arguments: json } = call.function as { name: string; arguments: string }
    const halves = json.match(/[\s\S]{1,6}/g) ?? []
    const opening = { index, id: call.id, type: 'function', function: { name, arguments: '' } }
    return [opening, ...halves.map((half) => ({ index, function: { arguments: half } }))]
  })
  return [
    ...(script.has('no-role') ? [] : [{ role: 'assistant', content: '' }]),
    ...reasoning.map((piece) => ({ reasoning_content: piece })),
    ...(script.has('giant') ? [{ content: 'x'.repeat(script.number('giant') ?? 0) }] : []),
    ...pieces.map((piece) => ({ content: piece })),
    ...toolDeltas.map((delta) => ({ tool_calls: [delta] })),
  ]
}

function renderEvents(body: Json, script: Script): string[] {
  const options = body.stream_options as { include_usage?: boolean } | undefined
  const wish = script.text('usage')
  const hasUsage = wish === 'always' || (wish !== 'never' && options?.include_usage === true)
  const head = {
    id: 'chatcmpl-up',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: body.model,
  }
  const toChunk = (choices: Json[], usage: Json | null) => ({ ...head, choices, ...(hasUsage && { usage }) })
  const deltas = toDeltas(body, script)
  const reason = script.has('tool') && deltas.some((delta) => 'tool_calls' in delta) ? 'tool_calls' : 'stop'
  const chunks = deltas.flatMap((delta) =>
    indexes(body).map((index) => toChunk([{ index, delta, finish_reason: null }], null)),
  )
  if (!script.has('no-finish')) {
    chunks.push(...indexes(body).map((index) => toChunk([{ index, delta: {}, finish_reason: reason }], null)))
  }
  if (hasUsage) chunks.push(toChunk([], toUsage(body, toReply(body, script).pieces)))
  const texts = chunks.map((chunk) => dump(chunk, script))
  if (!script.has('no-done')) texts.push('[DONE]')
  return breakEvents(texts, script)
}

/** Frames the texts as events, with the faults the script asks for. */
function breakEvents(texts: string[], script: Script): string[] {
  const end = script.has('crlf') ? '\r\n' : '\n'
  const toEvent = (text: string) =>
    `${script.has('comments') ? `: ping${end}${end}` : ''}data:${script.has('tight') ? '' : ' '}${text}${end}${end}`
  const badJson = script.number('bad-json')
  if (badJson !== undefined)
    texts.splice(badJson, 0, '{"id":"chatcmpl-up","choices":[{"delta":{"content":"x"')
  const events = texts.map(toEvent)
  const errorFrame = script.number('error-frame')
  if (errorFrame !== undefined)
    events.splice(errorFrame, Infinity, toEvent(dump({ error: scriptedError(script) }, script)))
  const halfLine = script.number('half-line')
  if (halfLine !== undefined) events.splice(halfLine, Infinity, 'data: {"id":"chatcmpl-up","choi')
  return events
}

// -- How it is sent ----------------------------------------------------------------------------------------------------

/** The mid-stream faults, with the number of events before each. */
const endings = ['hang-after', 'reset-after', 'cut-off', 'end-after'] as const

async function answer(plan: Plan, seen: SeenRequest, response: ServerResponse): Promise<void> {
  const { script } = plan
  await pauseFor(script.number('slow-head'))
  if (script.has('hints')) response.writeEarlyHints({ link: '</style.css>; rel=preload' })
  if (script.has('hang')) return
  if (script.has('reset')) return endByScript(seen, () => response.socket?.resetAndDestroy())
  if (script.has('close')) return endByScript(seen, () => response.socket?.destroy())
  const ending = endings.find((name) => script.has(name))
  const count = ending === undefined ? Infinity : (script.number(ending) ?? 0)
  const whole = plan.parts.join('')
  if (!plan.isStream) response.setHeader('content-length', Buffer.byteLength(whole))
  if (script.has('until-close')) {
    response.removeHeader('content-length')
    response.removeHeader('transfer-encoding')
    response.shouldKeepAlive = false
  }
  response.writeHead(plan.status, plan.headers).flushHeaders()
  const parts = plan.isStream
    ? plan.parts.slice(0, count)
    : [whole.slice(0, count === Infinity ? Infinity : whole.length / 2)]
  for (const write of toWrites(parts, script)) {
    if (!(await send(write, seen, response))) return
    await pauseFor(script.number('delay'))
    if (script.has('drip') || script.has('cut')) await nextTurn()
  }
  await flood(script.number('flood') ?? 0, seen, response)
  finish(ending, seen, response)
}

function finish(
  ending: (typeof endings)[number] | undefined,
  seen: SeenRequest,
  response: ServerResponse,
): void {
  if (ending === 'hang-after') return
  if (ending === undefined || ending === 'end-after') {
    response.end()
    return
  }
  // The empty write is called back when everything before it has left the process.
  response.socket?.write('', () =>
    endByScript(seen, () => {
      if (ending === 'reset-after') response.socket?.resetAndDestroy()
      else response.socket?.destroy()
    }),
  )
}

function endByScript(seen: SeenRequest, end: () => void): void {
  seen.endedBy = 'script'
  end()
}

async function pauseFor(ms: number | undefined): Promise<void> {
  if (ms !== undefined && ms > 0) await pause(ms)
}

function toWrites(parts: readonly string[], script: Script): readonly (string | Buffer)[] {
  const batch = script.number('batch')
  if (batch !== undefined) {
    return Array.from({ length: Math.ceil(parts.length / batch) }, (_, index) =>
      parts.slice(index * batch, (index + 1) * batch).join(''),
    )
  }
  const seed = script.number('cut')
  if (seed === undefined && !script.has('drip')) return parts
  const bytes = Buffer.from(parts.join(''))
  const random = createRandom(seed ?? 0)
  const writes: Buffer[] = []
  for (let start = 0; start < bytes.length; ) {
    const length = seed === undefined ? 1 : 1 + Math.floor(random() * 40)
    writes.push(bytes.subarray(start, start + length))
    start += length
  }
  return writes
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

async function flood(sizeBytes: number, seen: SeenRequest, response: ServerResponse): Promise<void> {
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(16_000) } }] })}\n\n`
  for (const start = seen.sentBytes; seen.sentBytes - start < sizeBytes; ) {
    if (!(await send(event, seen, response))) return
  }
}

/** Writes, and waits while the reader is slow; false once the client has left. */
async function send(write: string | Buffer, seen: SeenRequest, response: ServerResponse): Promise<boolean> {
  if (seen.endedBy !== null) return false
  seen.sentBytes += typeof write === 'string' ? Buffer.byteLength(write) : write.length
  if (response.write(write)) return true
  stuckSince.set(seen.id, Date.now())
  await new Promise<void>((resolve) => {
    const goOn = () => {
      response.off('drain', goOn).off('close', goOn)
      resolve()
    }
    response.on('drain', goOn).on('close', goOn)
  })
  stuckSince.delete(seen.id)
  return seen.endedBy === null
}

// -- What it saw -------------------------------------------------------------------------------------------------------

function record(request: IncomingMessage, response: ServerResponse, raw: string): SeenRequest {
  const { socket } = request
  if (!connections.has(socket)) connections.set(socket, connectionCount++)
  const seen: SeenRequest = {
    id: requestCount++,
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: settings['no-log'] ? null : parseBody(raw),
    connection: connections.get(socket) ?? 0,
    sentBytes: 0,
    endedBy: null,
    endedAt: null,
  }
  response.once('close', () => {
    seen.endedBy ??= response.writableFinished ? 'answer' : 'client'
    seen.endedAt = Date.now()
    notify()
  })
  if (settings['no-log']) return seen
  seenRequests.push(seen)
  if (seenRequests.length > 5_000) seenRequests.shift()
  notify()
  return seen
}

function parseBody(raw: string): unknown {
  if (raw === '') return null
  try {
    return JSON.parse(raw)
  } catch {
    return raw
  }
}

function notify(): void {
  for (const waiter of waiters) waiter()
}

/** Waits until `find` finds something, looking after each event and forty times a second. */
function until<Found>(find: () => Found | undefined): Promise<Found> {
  return new Promise((resolve) => {
    const look = () => {
      const found = find()
      if (found === undefined) return
      waiters.delete(look)
      clearInterval(timer)
      resolve(found)
    }
    const timer = setInterval(look, 25)
    waiters.add(look)
    look()
  })
}

function isStalled(seen: SeenRequest, ms: number): boolean {
  const since = stuckSince.get(seen.id)
  return seen.endedBy !== null || (since !== undefined && Date.now() - since >= ms)
}

async function control(request: IncomingMessage, url: URL, raw: string): Promise<unknown> {
  const query = (name: string) => url.searchParams.get(name) ?? ''
  const findSeen = () => seenRequests.find((seen) => seen.id === Number(query('id')))
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /__log':
      return seenRequests
    case 'DELETE /__log':
      for (const memory of [firstCounts, pathScripts]) memory.clear()
      seenRequests.length = 0
      return {}
    case 'GET /__log/wait':
      return until(() =>
        seenRequests.find(
          (seen) => seen.path.startsWith(query('path')) && JSON.stringify(seen.body).includes(query('text')),
        ),
      )
    case 'GET /__log/wait-closed':
      return until(() => {
        const seen = findSeen()
        return seen?.endedAt == null ? undefined : seen
      })
    case 'GET /__log/wait-stalled':
      return until(() => {
        const seen = findSeen()
        return seen !== undefined && isStalled(seen, Number(query('ms'))) ? seen : undefined
      })
    case 'PUT /__script': {
      const { path, text, times = Infinity } = JSON.parse(raw)
      pathScripts.set(path, { text, times })
      return {}
    }
    default:
      return undefined
  }
}

// -- The server --------------------------------------------------------------------------------------------------------

/** The directives for a request: those set for its path, else those in its own text; none once `first N` is used up. */
function chooseScript(path: string, body: Json): string {
  const set = pathScripts.get(path)
  if (set !== undefined && set.times > 0) {
    set.times--
    return set.text
  }
  const text = scriptText(body)
  const limit = text.includes('{{up:first') ? new Script(text).number('first') : undefined
  if (limit === undefined) return text
  const count = firstCounts.get(text) ?? 0
  firstCounts.set(text, count + 1)
  return count < limit ? text : ''
}

function findPlan(path: string, raw: string): Plan {
  const key = `${path}\n${raw}`
  const known = pathScripts.size === 0 ? plans.get(key) : undefined
  if (known !== undefined) return known
  const parsed = parseBody(raw)
  const body = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Json
  const text = chooseScript(path, body)
  const plan = toPlan(path, body, text)
  if (plans.size >= 50) plans.clear()
  if (pathScripts.size === 0 && !raw.includes('{{up:first')) plans.set(key, plan)
  return plan
}

async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let raw = ''
  for await (const read of request.setEncoding('utf8')) raw += read
  const url = new URL(request.url ?? '/', 'http://upstream')
  if (url.pathname.startsWith('/__')) {
    const found = await control(request, url, raw)
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ?? null))
    return
  }
  const seen = record(request, response, raw)
  if (!['/v1/models', '/v1/chat/completions', '/v1/embeddings'].includes(url.pathname)) {
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end('{"error":{"message":"no such path"}}')
    return
  }
  await answer(findPlan(url.pathname, raw), seen, response)
}

const server = createServer((request, response) => {
  // A client that leaves while its request is being read breaks the reading off; there is nobody to answer.
  onRequest(request, response).catch((error) => {
    if (!request.destroyed) process.stderr.write(`${error.stack}\n`)
    response.destroy()
  })
})
server.keepAliveTimeout = 60_000
server.listen({ port: Number(settings.port), host: '127.0.0.1', backlog: 4096 }, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
// Started with a channel to its parent, it ends with the parent.
process.once('disconnect', () => process.exit())
