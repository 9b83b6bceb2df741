/** Starts agents whose model policy has `degrade`, and sets how much of their budgets is used up. */
import { startApp, type TestApp } from './app.ts'
import { createBudget } from './budgets.ts'
import { writeConfigFile } from './config-file.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'
import { type ChatBody, type MeteredProvider, type Plan, startMeteredProvider } from './metered-provider.ts'
import { agentWith, tool } from './tools.ts'
import { sendChat } from './usage.ts'

export const large = { provider: 'gateway', model: 'metered' }
export const medium = { provider: 'gateway', model: 'spare' }
export const small = { provider: 'gateway', model: 'thrifty' }
export const free = { provider: 'play', model: 'mock' }
export const LIMIT = 100_000

interface Degrading {
  readonly app: TestApp
  readonly clock: FakeClock
  readonly provider: MeteredProvider
  readonly id: string
  readonly key: string
  /** Sends a chat with the agent key; returns the requested model and the header. */
  ask(more?: object): Promise<{ model: unknown; degraded: string | null; status: number }>
}

/** Creates an agent whose policy has `degrade`. */
export async function startDegrading(
  policy: object = { degrade: [{ at: 80, to: small }] },
  { yaml = agentWith([]), plan = () => ({}), more = {}, config = '' }: Settings = {},
): Promise<Degrading> {
  const provider = await startMeteredProvider(plan)
  const providers = `providers:\n  gateway: { url: "${provider.url}" }\n  play: { kind: mock }\n`
  const clock = createFakeClock()
  const app = await startApp(
    { PARLEY_CONFIG: await writeConfigFile(providers + config), PARLEY_BUDGET_WAIT_SECONDS: '0', ...more },
    { clock, tools: { lookup: tool(() => 'found') } },
  )
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const put = await app.call('PUT', pathOf(id), { body: { default_model: large, ...policy } })
  if (put.status !== 200) throw new Error(put.text)
  const ask = async (fields: object = {}) => {
    const before = provider.requests.length
    const { status, headers } = await sendChat(app, 'hello', { model: undefined, ...fields }, key)
    const model = provider.requests.slice(before).at(-1)?.model
    return { model, degraded: headers.get('x-parley-degraded'), status }
  }
  return { app, clock, provider, id, key, ask }
}

interface Settings {
  readonly yaml?: string
  readonly plan?: (body: ChatBody) => Plan | Promise<Plan>
  readonly more?: Readonly<Record<string, string>>
  readonly config?: string
}

export const pathOf = (id: string) => `/v1/agents/${id}/model-policy`

/** Creates a daily budget for the agent, with changes; returns its id. */
export function createAgentBudget(
  { app, id }: Pick<Degrading, 'app' | 'id'>,
  more: object = {},
): Promise<string> {
  return createBudget(app, { scope: { type: 'agent', id }, period: 'day', limit: LIMIT, ...more })
}

/** Sets what the budget has booked. */
export async function book(app: TestApp, id: string, amount: number, subject?: string): Promise<void> {
  const { body: budget } = await app.call('GET', `/v1/budgets/${id}`)
  const { body: list } = await app.call('GET', `/v1/budgets/${id}/subjects`)
  const booked =
    subject === undefined
      ? Number(budget.booked)
      : Number(list.data.find((one: { subject: string }) => one.subject === subject)?.booked ?? 0)
  const difference = String(Number((amount - booked).toFixed(9)))
  const body = { amount: difference, reason: 'test', ...(subject !== undefined && { subject }) }
  const { status, text } = await app.call('POST', `/v1/budgets/${id}/adjustments`, { body })
  if (status !== 201) throw new Error(text)
}

export const FIRST = { model: 'metered', degraded: null, status: 200 }
export const SECOND = { model: 'spare', degraded: 'budget', status: 200 }
export const THIRD = { model: 'thrifty', degraded: 'budget', status: 200 }
