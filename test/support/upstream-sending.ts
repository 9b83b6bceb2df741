/** Sends the scripted model provider's responses, with the scripted delays and faults. */
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { createRandom } from './random.ts'
import type { Plan } from './upstream-answers.ts'
import type { SeenRequest } from './upstream-log.ts'
import type { Script } from './upstream-script.ts'

/** Unix milliseconds at which the client began to block a response, by request. */
const stuckSince = new WeakMap<SeenRequest, number>()

/** Returns whether the client has blocked the response for at least `ms` milliseconds. */
export function isStuck(seen: SeenRequest, ms: number): boolean {
  const since = stuckSince.get(seen)
  return since !== undefined && Date.now() - since >= ms
}

/** Faults in the middle of a stream. The directive's value is the number of events before the fault. */
const endings = ['hang-after', 'reset-after', 'cut-off', 'end-after'] as const

/** Sends a response; resolves after the last write. */
export async function sendAnswer(plan: Plan, seen: SeenRequest, response: ServerResponse): Promise<void> {
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
  // The callback of an empty write runs after all earlier writes are flushed.
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

async function flood(sizeBytes: number, seen: SeenRequest, response: ServerResponse): Promise<void> {
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(16_000) } }] })}\n\n`
  for (const start = seen.sentBytes; seen.sentBytes - start < sizeBytes; ) {
    if (!(await send(event, seen, response))) return
  }
}

/** Writes a chunk and respects backpressure; returns false if the client has disconnected. */
async function send(write: string | Buffer, seen: SeenRequest, response: ServerResponse): Promise<boolean> {
  if (seen.endedBy !== null) return false
  seen.sentBytes += typeof write === 'string' ? Buffer.byteLength(write) : write.length
  if (response.write(write)) return true
  stuckSince.set(seen, Date.now())
  await new Promise<void>((resolve) => {
    const goOn = () => {
      response.off('drain', goOn).off('close', goOn)
      resolve()
    }
    response.on('drain', goOn).on('close', goOn)
  })
  stuckSince.delete(seen)
  return seen.endedBy === null
}
