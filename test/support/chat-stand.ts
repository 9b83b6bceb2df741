/** Services that chat through a scripted upstream in a second process. */
import { beforeEach } from 'vitest'
import type { ServiceOptions } from '../../src/server/build.ts'
import { startApp, type TestApp } from './app.ts'
import { createFakeClock } from './fake-clock.ts'
import { type SeenRequest, shareUpstream, type Upstream } from './start-upstream.ts'

/** The key that services of tests present to their upstream. */
export const PROVIDER_KEY = 'provider-key-0123456789'

/** An upstream, and the services in front of it. */
export interface ChatStand {
  readonly upstream: Upstream
  /** Starts a service that stops with the test; its retries do not pause. */
  start(env?: Readonly<Record<string, string>>, options?: Omit<ServiceOptions, 'config'>): Promise<TestApp>
  /** The chat requests the upstream has seen, oldest first. */
  listChats(): Promise<SeenRequest[]>
  /** What the upstream answers to a body, without a service in between. */
  readDirectly(body: unknown): Promise<string>
  /** Answers chats with this JSON, or with these events, whatever they ask; `times` of them, or all. */
  answerWith(body: object | readonly object[], times?: number): Promise<void>
}

const CHAT_PATH = '/v1/chat/completions'

/** Uses the upstream of this worker; before each test it has seen nothing. */
export async function startChatStand(): Promise<ChatStand> {
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

/** A request whose last user message says `text`. */
export function say(text: string, more: object = {}): object {
  return { model: 'up-chat', messages: [{ role: 'user', content: text }], ...more }
}
