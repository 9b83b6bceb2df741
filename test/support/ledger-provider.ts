/** Starts a model provider that records in its own ledger what it charges for the calls of each schedule. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

/** The behavior of the provider in a call. It charges correctly, also if it reports something else. */
export interface CallPlan {
  /** Tokens that the model would produce without a limit. */
  readonly wanted: number
  /** `cut`: closes the connection after `at` tokens. `hangs`: sends nothing after `at` tokens. */
  readonly ending: 'whole' | 'silent' | 'lies' | 'cut' | 'hangs' | 'refused'
  readonly at: number
  /** Called when the provider has produced `at` tokens. */
  readonly onReached: () => void
}

export interface Ledger {
  input: number
  output: number
}

export interface LedgerProvider {
  readonly url: string
  /** Finds the plan and the ledger of a request by the text of its message. */
  readonly plans: Map<string, { readonly plan: CallPlan; readonly ledger: Ledger }>
}

/** Tokens that a provider produces after its connection was closed. */
const AFTER_CUT = 256

interface ChatBody {
  readonly messages: readonly { readonly content: string }[]
  readonly stream?: boolean
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
}

export async function startLedgerProvider(): Promise<LedgerProvider> {
  const plans: LedgerProvider['plans'] = new Map()
  const server = createServer((request, response) => {
    response.on('error', () => {})
    // A killed server ends its requests before their bodies are complete.
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') return sendJson(response, 200, { object: 'list', data: [model] })
    const body: ChatBody = JSON.parse(await text(request))
    const { plan, ledger } = plans.get(body.messages.at(-1)?.content ?? '') ?? {}
    if (plan === undefined || ledger === undefined) return sendJson(response, 400, {})
    if (plan.ending === 'refused') {
      plan.onReached()
      return sendJson(response, 500, { error: { message: 'refused' } })
    }
    const input = Math.ceil(JSON.stringify(body.messages).length / 4)
    ledger.input += input
    const most = body.max_completion_tokens ?? body.max_tokens ?? Number.POSITIVE_INFINITY
    const tokens = Math.min(plan.wanted, most)
    const usage = usageOf(plan, input, tokens)
    const isStream = body.stream === true
    if (isStream) response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let produced = 0; produced <= tokens; produced++) {
      if (produced === Math.min(plan.at, tokens)) plan.onReached()
      if (produced >= plan.at && plan.ending === 'hangs' && !response.closed)
        await new Promise((resolve) => response.once('close', resolve))
      if (produced >= plan.at && plan.ending === 'cut') response.destroy()
      if (produced === tokens) break
      if (response.closed || response.destroyed) {
        // Without a stream, the provider may produce the whole answer.
        const rest = tokens - produced
        ledger.output += isStream && plan.ending !== 'cut' ? Math.min(rest, AFTER_CUT) : rest
        return
      }
      ledger.output += 1
      if (isStream) sendEvent(response, { choices: [{ index: 0, delta: { content: 'word ' } }] })
      await setImmediate()
    }
    const finish_reason = tokens < plan.wanted ? 'length' : 'stop'
    if (!isStream) {
      const message = { role: 'assistant', content: 'word '.repeat(tokens) }
      const choices = [{ index: 0, message, finish_reason }]
      return sendJson(response, 200, { ...head, object: 'chat.completion', choices, ...usage })
    }
    sendEvent(response, { choices: [{ index: 0, delta: {}, finish_reason }] })
    if ('usage' in usage) sendEvent(response, { choices: [], ...usage })
    response.end('data: [DONE]\n\n')
  }

  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, plans }
}

const model = { id: 'metered', object: 'model', created: 1, owned_by: 'test' }
const head = { id: 'c', created: 1, model: 'metered' }

function usageOf({ ending }: CallPlan, prompt_tokens: number, completion_tokens: number) {
  if (ending === 'silent') return {}
  if (ending === 'lies') return { usage: { prompt_tokens: 0, completion_tokens: -1, total_tokens: 1e308 } }
  return { usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } }
}

function sendEvent(response: ServerResponse, fields: object): void {
  response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...fields })}\n\n`)
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
