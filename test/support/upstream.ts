/**
 * Runs a scripted OpenAI-compatible server in a second process: `node test/support/upstream.ts [--port N]` prints
 * `listening <port>`.
 *
 * Without a script it answers correctly. Directives of the form `{{up:name value}}` change its answers. It reads them from the
 * last user message (or the `input` of embeddings), which services under test forward; `PUT /__script` sets them for requests
 * without text. A value may contain JSON. N is a number of events, by default 0.
 *
 * Content of the answer
 *   text T, chunks N, reasoning T, tool NAME {json}   the text; N pieces of text; reasoning_content; a tool call (repeatable)
 *   usage always|never                                overrides `stream_options.include_usage`
 *   status N, body T, message T, retry-after T        an error, or T as the whole body
 *   redirect URL, type T, header NAME: T              307; another content type; an additional header (repeatable)
 *   no-finish, no-done, no-role                       parts that a stream omits
 *   error-frame N, bad-json N, half-line N, giant N   after N events: an error event, broken JSON, half a line and the end;
 *                                                     a first event of N bytes
 *   crlf, comments, python, tight                     line ends, pings, JSON as Python prints it, no space after `data:`
 * Timing and framing
 *   slow-head MS, delay MS, batch N                   wait before the head, between writes; events per write
 *   hints                                             an informational 103 before the head
 *   hang, reset, close                                before the head: nothing, RST, FIN
 *   hang-after N, reset-after N, cut-off N, end-after N   mid-stream (cut-off: FIN without the end; also for JSON: half of it)
 *   drip, cut SEED                                    one byte a write; cut at points chosen by SEED
 *   until-close                                       the end of the connection ends the body, without chunks or a length
 *   flood BYTES                                       events until BYTES are sent; waits for the reader
 * Conditions
 *   first N                                           the other directives apply to the first N requests with this text
 *   only MODEL                                        they apply to requests for that model
 *
 * Control paths
 *   GET /__log, DELETE /__log                         lists the requests; clears requests, scripts and counts
 *   GET /__log/wait?text=T&path=P                     waits for a request that contains T
 *   GET /__log/wait-closed?id=I                       waits until request I's connection has closed or its answer has ended
 *   GET /__log/wait-stalled?id=I&ms=N                 waits until a write of I has been blocked for N ms, or I has ended
 *   PUT /__script {path, text, times?}                directives for requests on a path
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

/** Returns a request's directives: those of its path or else those in its text, unless `first N` is used up. */
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
