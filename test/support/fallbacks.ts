/** Creates agents with a fallback model, and reads which model responded. */
import type { Answer } from './app.ts'
import { type ChatStand, say } from './chat-stand.ts'
import { createFakeClock } from './fake-clock.ts'

export const CHAT = { provider: 'gateway', model: 'up-chat' }
export const SMALL = { provider: 'gateway', model: 'up-small' }
/** Settings that disable retries. */
export const ONCE = { PARLEY_BACKEND_ATTEMPTS: '1' }

export function createFallbackStand(stand: ChatStand) {
  return {
    /** Starts a service and creates an agent with a default model and a fallback model. */
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
    /** Lists the requested models in the order of the provider's requests. */
    async askedModels(): Promise<unknown[]> {
      return (await stand.listChats()).map(({ body }) => (body as { model: unknown }).model)
    },
  }
}

/** Returns the headers with the provider, the number of attempts, and whether a fallback was used. */
export function told({ headers }: Answer): (string | null)[] {
  return [
    headers.get('x-parley-provider'),
    headers.get('x-parley-attempts'),
    headers.get('x-parley-fallback'),
  ]
}

/** Returns a script for the model provider that applies to only one model. */
export function only(script: string, model = 'up-chat'): string {
  return `{{up:only ${model}}}${script}`
}
