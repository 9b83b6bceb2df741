/** Starts services that use a scripted model provider. */
import { beforeEach } from 'vitest'
import type { ServiceOptions } from '../../src/server/build.ts'
import { startApp, type TestApp } from './app.ts'
import { createFakeClock } from './fake-clock.ts'
import { type SeenRequest, shareUpstream, type Upstream } from './start-upstream.ts'

/** The key that test services send to the scripted model provider. */
export const PROVIDER_KEY = 'provider-key-0123456789'

export interface ChatHarness {
  readonly upstream: Upstream
  /** Starts a service without delays between retries, and closes it when the test ends. */
  start(env?: Readonly<Record<string, string>>, options?: Omit<ServiceOptions, 'config'>): Promise<TestApp>
  /** Lists the chat requests that the provider has received, oldest first. */
  listChats(): Promise<SeenRequest[]>
  /** Sends a request directly to the provider; returns the response body. */
  readDirectly(body: unknown): Promise<string>
  /** Sets the next `times` chat responses (default: all): a JSON body or a list of stream events. */
  answerWith(body: object | readonly object[], times?: number): Promise<void>
}

const CHAT_PATH = '/v1/chat/completions'

/** Uses the worker's scripted provider, and clears its request log before each test. */
export async function startChatHarness(): Promise<ChatHarness> {
  const upstream = await shareUpstream()
  beforeEach(() => upstream.clear())
  return {
    upstream,
    start: (env = {}, options = {}) =>
      startApp(
        {
          PARLEY_BACKEND: 'gateway',
          PARLEY_GATEWAY_URL: upstream.url,
          PARLEY_GATEWAY_API_KEY: PROVIDER_KEY,
          ...env,
        },
        { clock: createFakeClock(), ...options },
      ),
    listChats: async () => (await upstream.listRequests()).filter(({ path }) => path === CHAT_PATH),
    async readDirectly(body) {
      const answer = await fetch(upstream.origin + CHAT_PATH, { method: 'POST', body: JSON.stringify(body) })
      return answer.text()
    },
    answerWith(body, times) {
      const text = Array.isArray(body)
        ? `{{up:type text/event-stream}}{{up:body ${[...body.map(toEvent), 'data: [DONE]\n\n'].join('')}}}`
        : `{{up:body ${JSON.stringify(body)}}}`
      return upstream.script(CHAT_PATH, text, times)
    },
  }
}

function toEvent(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** Returns a chat completion request with `text` as the user message. */
export function chatRequest(text: string, more: object = {}): object {
  return { model: 'up-chat', messages: [{ role: 'user', content: text }], ...more }
}
