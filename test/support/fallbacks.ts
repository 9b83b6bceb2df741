/** Agents whose model can fail while another one answers, and what their answers tell of it. */
import type { Answer } from './app.ts'
import { type ChatStand, say } from './chat-stand.ts'
import { createFakeClock } from './fake-clock.ts'

export const CHAT = { provider: 'gateway', model: 'up-chat' }
export const SMALL = { provider: 'gateway', model: 'up-small' }
/** A model is asked once. */
export const ONCE = { PARLEY_BACKEND_ATTEMPTS: '1' }

export function createFallbackStand(stand: ChatStand) {
  return {
    /** An agent whose default is `up-chat`, with `up-small` behind it. */
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
    /** The models the backend was asked for, in order. */
    async askedModels(): Promise<unknown[]> {
      return (await stand.listChats()).map(({ body }) => (body as { model: unknown }).model)
    },
  }
}

/** Who answered, after how many calls, and whether as a fallback. */
export function told({ headers }: Answer): (string | null)[] {
  return [
    headers.get('x-parley-provider'),
    headers.get('x-parley-attempts'),
    headers.get('x-parley-fallback'),
  ]
}

/** A script for one model alone. */
export function only(script: string, model = 'up-chat'): string {
  return `{{up:only ${model}}}${script}`
}
