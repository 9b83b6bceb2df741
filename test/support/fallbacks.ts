/** Creates agents with a fallback model, and reads which model responded. */
import type { Answer } from './app.ts'
import { type ChatHarness, chatRequest } from './chat-harness.ts'
import { createFakeClock } from './fake-clock.ts'

export const defaultModel = { provider: 'gateway', model: 'up-chat' }
export const fallbackModel = { provider: 'gateway', model: 'up-small' }
export const noRetries = { PARLEY_BACKEND_ATTEMPTS: '1' }

export function createFallbackHarness(harness: ChatHarness) {
  return {
    /** Starts a service and creates an agent with a default model and a fallback model. */
    async startAgent(policy: object = {}, env = {}, clock = createFakeClock(), yaml?: string) {
      const app = await harness.start(env, { clock })
      const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
      const body = { default_model: defaultModel, fallback_models: [fallbackModel], ...policy }
      const put = await app.call('PUT', `/v1/agents/${id}/model-policy`, { body })
      if (put.status !== 200) throw new Error(put.text)
      const ask = (text: string, more: object = {}): Promise<Answer> =>
        app.call('POST', '/v1/chat/completions', {
          key,
          body: chatRequest(text, { model: undefined, ...more }),
        })
      return { app, id, key, ask }
    },
    /** Lists the requested models in the order of the provider's requests. */
    async askedModels(): Promise<unknown[]> {
      return (await harness.listChats()).map(({ body }) => (body as { model: unknown }).model)
    },
  }
}

/** Returns the headers with the provider, the number of attempts, and whether a fallback was used. */
export function routingHeadersOf({ headers }: Answer): (string | null)[] {
  return [
    headers.get('x-parley-provider'),
    headers.get('x-parley-attempts'),
    headers.get('x-parley-fallback'),
  ]
}

/** Returns a script for the model provider that applies to only one model. */
export function onlyForModel(script: string, model = 'up-chat'): string {
  return `{{up:only ${model}}}${script}`
}
