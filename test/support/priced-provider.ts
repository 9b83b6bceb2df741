/** Starts services whose models have prices, and calculates the cost of their calls. */
import { startApp, type TestApp } from './app.ts'
import { writeConfigFile } from './config-file.ts'
import { createFakeClock } from './fake-clock.ts'
import { type ChatBody, type MeteredProvider, type Plan, startMeteredProvider } from './metered-provider.ts'
import { tool } from './tools.ts'

export const NOON = Date.UTC(2026, 10, 20, 12) / 1000
const PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 1, cache_write: 1.25, output: 2, reasoning: 3, input_audio: 10, output_audio: 20 }
      per_call: "0.001"
      per_web_search: 0.01
      above: [{ input_tokens: 100000, per_million: { input: 4, output: 6 } }]
      tiers: { priority: 2 }
      windows: [{ from: "16:30", to: "18:00", per_million: { output: 5 } }]
      bounds: { image_tokens: 1445, audio_tokens_per_kib: 16, file_tokens: 40000, overhead_tokens: 300 }
      output_field: max_completion_tokens
  gateway/thrifty:
    - per_million: { input: 0.01, output: 0.01 }
`
/** Nano-dollars for each token at the highest rates of the price above. */
export const [INPUT, OUTPUT, PER_CALL] = [1_250, 5_000, 1_000_000]
/** Selects the model with the price above. */
export const METERED = { model: 'metered' }
/** The messages of `sendChat(app, 'hello')`. */
export const hello = [{ role: 'user', content: 'hello' }]

export interface Priced {
  readonly app: TestApp
  readonly provider: MeteredProvider
}

/** Starts a provider with the models `metered` and `thrifty`, which have prices, and an app that uses it. */
export async function startPriced(
  plan: (body: ChatBody) => Plan | Promise<Plan> = () => ({}),
  env: Record<string, string> = {},
  config = PRICES,
): Promise<Priced> {
  const provider = await startMeteredProvider(plan)
  const app = await startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(config),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
      PARLEY_BUDGET_WAIT_SECONDS: '0',
      ...env,
    },
    { clock: createFakeClock(NOON), tools: { lookup: tool(() => 'x'.repeat(2_000)) } },
  )
  return { app, provider }
}

/** Renders nano-dollars as the API does. */
export function usd(nano: number): string {
  return (nano / 1e9).toFixed(9).replace(/\.?0+$/, '')
}

/** Bytes of the JSON that the input bound counts, and 16 tokens for each message. */
export function inputOf(messages: readonly object[], more: object = {}): number {
  return Buffer.byteLength(JSON.stringify({ messages, ...more })) + 16 * messages.length
}
