/** Builds the scripted model provider's responses. */
import { type ChatBody, type Json, Script, scriptText, toText } from './upstream-script.ts'

export interface Plan {
  readonly script: Script
  readonly status: number
  readonly headers: Record<string, string>
  /** The body; for a stream, one string per event. */
  readonly parts: readonly string[]
  readonly isStream: boolean
}

export function toPlan(path: string, body: Json, text: string): Plan {
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

/** Renders JSON like Python's `json.dumps`, with spaces after commas and colons and only in ASCII. */
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

/** A reply of the assistant: pieces of its text, its reasoning and its tool calls. */
interface Reply {
  readonly pieces: readonly string[]
  readonly reasoning: readonly string[]
  readonly calls: readonly (readonly string[])[]
}

/** Builds the assistant's reply. After a tool message, the reply quotes the tool's result. */
function toReply(body: Json, script: Script): Reply {
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

function toUsage(body: Json, { pieces }: Reply): Json {
  const { messages } = body as ChatBody
  const prompt = (messages ?? []).flatMap((message) => toText(message.content).split(/\s+/)).length
  return { prompt_tokens: prompt, completion_tokens: pieces.length, total_tokens: prompt + pieces.length }
}

function toToolCalls(calls: Reply['calls']) {
  return calls.map(([name, json], index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: json || '{}' },
  }))
}

function toFinishReason({ calls }: Reply): string {
  return calls.length > 0 ? 'tool_calls' : 'stop'
}

function toHead(object: string, body: Json): Json {
  return { id: 'chatcmpl-up', object, created: 1_700_000_000, model: body.model }
}

function toCompletion(body: Json, script: Script): Json {
  const reply = toReply(body, script)
  const { pieces, reasoning, calls } = reply
  const message = {
    role: 'assistant',
    content: pieces.length === 0 ? null : pieces.join(''),
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    ...(calls.length > 0 && { tool_calls: toToolCalls(calls) }),
  }
  const finish_reason = toFinishReason(reply)
  return {
    ...toHead('chat.completion', body),
    choices: indexes(body).map((index) => ({ index, message, finish_reason })),
    usage: toUsage(body, reply),
  }
}

function indexes(body: Json): number[] {
  return Array.from({ length: typeof body.n === 'number' ? body.n : 1 }, (_, index) => index)
}

function toEmbeddings(body: Json): Json {
  const isList = Array.isArray(body.input) && typeof body.input[0] !== 'number'
  const inputs = isList ? (body.input as unknown[]) : [body.input]
  const width = typeof body.dimensions === 'number' ? body.dimensions : 8
  const data = inputs.map((input, index) => {
    const vector = Float32Array.from({ length: width }, (_, place) => Math.sin(String(input).length + place))
    const embedding =
      body.encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
    return { object: 'embedding', index, embedding }
  })
  return { object: 'list', data, model: body.model, usage: { prompt_tokens: 1, total_tokens: 1 } }
}

/** Lists the stream deltas of a message, in the order that real servers use. */
function toDeltas({ pieces, reasoning, calls }: Reply, script: Script): Json[] {
  const toolDeltas = toToolCalls(calls).flatMap(({ id, function: { name, arguments: json } }, index) => {
    const opening = { index, id, type: 'function', function: { name, arguments: '' } }
    const parts = json.match(/[\s\S]{1,6}/g) ?? []
    return [opening, ...parts.map((part) => ({ index, function: { arguments: part } }))]
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
  const head = toHead('chat.completion.chunk', body)
  const toChunk = (choices: Json[], usage: Json | null) => ({ ...head, choices, ...(hasUsage && { usage }) })
  const reply = toReply(body, script)
  const chunks = toDeltas(reply, script).flatMap((delta) =>
    indexes(body).map((index) => toChunk([{ index, delta, finish_reason: null }], null)),
  )
  if (!script.has('no-finish')) {
    const finish_reason = toFinishReason(reply)
    chunks.push(...indexes(body).map((index) => toChunk([{ index, delta: {}, finish_reason }], null)))
  }
  if (hasUsage) chunks.push(toChunk([], toUsage(body, reply)))
  const texts = chunks.map((chunk) => dump(chunk, script))
  if (!script.has('no-done')) texts.push('[DONE]')
  return breakEvents(texts, script)
}

/** Formats the texts as server-sent events with the scripted faults. */
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
