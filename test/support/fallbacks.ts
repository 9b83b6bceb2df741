/** Creates agents with a fallback model, and reads which model answered. */
import type { Answer } from './app.ts'
import { type ChatStand, say } from './chat-stand.ts'
import { createFakeClock } from './fake-clock.ts'

export const CHAT = { provider: 'gateway', model: 'up-chat' }
export const SMALL = { provider: 'gateway', model: 'up-small' }
/** Settings without retries. */
export const ONCE = { PARLEY_BACKEND_ATTEMPTS: '1' }

export function createFallbackStand(stand: ChatStand) {
  return {
    /** Starts a service with an agent whose default is `up-chat` and whose fallback is `up-small`. */
    async startAgent(policy: object = {}, env = {}, clock = createFakeClock(), yaml?: string) {
      const app = await stand.start(env, { clock })
      const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
      const body = { default_model: CHAT, fallback_models: [SMALL], ...policy }
      const put = await app.call('PUT', `/v1/agents/${id}/model-policy`, { body })
      if (put.status !== 200) throw new Error(put.text)
      const ask = (text: string, more: object = {}): Promise<Answer> =>
        app.call('POST', '/v1/chat/completions', { key, body: say(text, { model: undefined, ...more }) })
      return { app, id, key, ask }
    },
    /** Lists the models that the upstream was asked for, in order. */
    async askedModels(): Promise<unknown[]> {
      return (await stand.listChats()).map(({ body }) => (body as { model: unknown }).model)
    },
  }
}

/** Returns the answering provider, the number of attempts, and whether a fallback answered. */
export function told({ headers }: Answer): (string | null)[] {
  return [
    headers.get('x-parley-provider'),
    headers.get('x-parley-attempts'),
    headers.get('x-parley-fallback'),
  ]
}

/** Limits an upstream script to one model. */
export function only(script: string, model = 'up-chat'): string {
  return `{{up:only ${model}}}${script}`
}
