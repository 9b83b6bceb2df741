/**
 * Runs a scripted OpenAI-compatible server in a separate process. `node test/support/upstream.ts [--port N]`
 * prints `listening <port>`.
 *
 * Without directives, the server sends correct responses. Directives of the form `{{up:name value}}` change
 * them. The server reads directives from the last user message or from the `input` of embeddings, unless
 * `PUT /__script` has set directives for the path. A value may contain JSON. N is a number; 0 if it is
 * missing. T is a text.
 *
 * Content of the response
 *   text T, chunks N, reasoning T   the text; N pieces of text; the reasoning
 *   tool NAME {json}                a tool call (repeatable)
 *   usage always|never              overrides `stream_options.include_usage`
 *   status N, message T, body T     the status; the error's message; the whole body
 *   retry-after T                   the header Retry-After
 *   redirect URL                    status 307 with this Location
 *   type T, header NAME: T          another content type; an additional header (repeatable)
 *   no-finish, no-done, no-role     omits the finish reason, `[DONE]` or the role from a stream
 *   error-frame N, half-line N      after N events: an error event or half a line, and then the stream's end
 *   bad-json N                      inserts an event with invalid JSON after N events
 *   giant N                         inserts an event with a text of N bytes before the text
 *   crlf, comments, tight           CRLF line ends; a comment before each event; no space after `data:`
 *   python                          JSON in the format of Python's `json.dumps`
 * Timing and framing
 *   slow-head MS, delay MS          waits before the headers; waits after each write
 *   batch N                         writes N events at once
 *   hints                           sends status 103 before the headers
 *   hang, reset, close              instead of headers: sends nothing; resets or closes the connection
 *   hang-after N, reset-after N     after N events: sends nothing more; resets the connection
 *   cut-off N, end-after N          after N events: closes the connection; ends the response
 *                                   (all four: after half of the body if it is not a stream)
 *   drip, cut SEED                  writes one byte at a time; writes chunks of random sizes
 *   until-close                     marks the end of the body only by closing the connection
 *   flood BYTES                     adds events with this many bytes; waits while the client does not read
 * Conditions
 *   first N                         the directives apply only to the first N requests with this text
 *   only MODEL                      the directives apply only to requests for this model
 *
 * Control paths
 *   GET /__log, DELETE /__log       lists the requests; clears requests, scripts and counters
 *   GET /__log/wait?text=T&path=P   waits for a request that contains T on a path that starts with P
 *   GET /__log/wait-closed?id=I     waits until request I has ended
 *   GET /__log/wait-stalled?id=I&ms=N   waits until a write of I has been blocked for N ms, or I has ended
 *   PUT /__script {path, text, times?}  sets the directives for the next `times` requests on a path
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { type Plan, toPlan } from './upstream-answers.ts'
import { RequestLog, type SeenRequest } from './upstream-log.ts'
import { type Json, Script, scriptText } from './upstream-script.ts'
import { isStuck, sendAnswer } from './upstream-sending.ts'

export type { SeenRequest }

const { values: settings } = parseArgs({
  options: { port: { type: 'string', default: '0' } },
})
const log = new RequestLog()
const plans = new Map<string, Plan>()
const firstCounts = new Map<string, number>()
const pathScripts = new Map<string, { text: string; times: number }>()

/** Handles requests to control paths; returns undefined for other paths. */
async function control(request: IncomingMessage, url: URL, raw: string): Promise<unknown> {
  const query = (name: string) => url.searchParams.get(name) ?? ''
  const isAsked = (seen: SeenRequest) => seen.id === Number(query('id'))
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /__log':
      return log.list()
    case 'DELETE /__log':
      for (const memory of [firstCounts, pathScripts, log]) memory.clear()
      return {}
    case 'GET /__log/wait':
      return log.waitFor(
        (seen) => seen.path.startsWith(query('path')) && JSON.stringify(seen.body).includes(query('text')),
      )
    case 'GET /__log/wait-closed':
      return log.waitFor((seen) => isAsked(seen) && seen.endedAt !== null)
    case 'GET /__log/wait-stalled':
      return log.waitFor(
        (seen) => isAsked(seen) && (seen.endedBy !== null || isStuck(seen, Number(query('ms')))),
      )
    case 'PUT /__script': {
      const { path, text, times = Infinity } = JSON.parse(raw)
      pathScripts.set(path, { text, times })
      return {}
    }
    default:
      return undefined
  }
}

/** Returns the directives of the request's path, or else those in its text if `only` and `first` apply. */
function chooseScript(path: string, body: Json): string {
  const set = pathScripts.get(path)
  if (set !== undefined && set.times > 0) {
    set.times--
    return set.text
  }
  const text = scriptText(body)
  if (text.includes('{{up:only') && new Script(text).text('only') !== body.model) return ''
  const limit = text.includes('{{up:first') ? new Script(text).number('first') : undefined
  if (limit === undefined) return text
  const count = firstCounts.get(text) ?? 0
  firstCounts.set(text, count + 1)
  return count < limit ? text : ''
}

/** Caches the response to each distinct request, so that benchmarks do not measure parsing. */
function findPlan(path: string, raw: string, parsed: unknown): Plan {
  const body = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Json
  const text = chooseScript(path, body)
  const key = `${path}\n${text}\n${raw}`
  const known = plans.get(key)
  if (known !== undefined) return known
  if (plans.size >= 50) plans.clear()
  const plan = toPlan(path, body, text)
  plans.set(key, plan)
  return plan
}

function parseBody(raw: string): unknown {
  if (raw === '') return null
  try {
    return JSON.parse(raw)
  } catch {
    return raw
  }
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
  const body = parseBody(raw)
  const seen = log.add(request, response, body)
  if (!['/v1/models', '/v1/chat/completions', '/v1/embeddings'].includes(url.pathname)) {
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end('{"error":{"message":"no such path"}}')
    return
  }
  await sendAnswer(findPlan(url.pathname, raw, body), seen, response)
}

const server = createServer((request, response) => {
  // Ignores errors from clients that disconnect during a request.
  onRequest(request, response).catch((error) => {
    if (!request.destroyed) process.stderr.write(`${error.stack}\n`)
    response.destroy()
  })
})
server.keepAliveTimeout = 60_000
server.listen({ port: Number(settings.port), host: '127.0.0.1', backlog: 4096 }, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
// Exits when the parent process closes the IPC channel.
process.once('disconnect', () => process.exit())
