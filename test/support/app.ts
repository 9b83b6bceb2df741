/** Starts a service for a test and checks its responses against the documented schemas. */
import { join } from 'node:path'
import OpenAI from 'openai'
import { inject, onTestFinished } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import type { ServiceOptions } from '../../src/server/build.ts'
import { createService, type Service } from '../../src/server/service.ts'
import { createRedactedLog, listSecrets } from '../../src/telemetry/log.ts'
import { AnswerChecker } from './answer-checker.ts'
import { checkLine, forbidMessagesInLog } from './log-leaks.ts'
import { borrowDatabase } from './postgres.ts'
import { makeFolder } from './process.ts'

/** The definition that `createAgent` uses by default. */
export const GREETER = 'name: Greeter\ninstructions: Greet people.\n'

/** An HTTP response. `body` is the parsed JSON, or null if the body is empty or not JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any
}

export interface CallOptions {
  /** Null sends no key; by default, the app's parent key. */
  readonly key?: string | null
  /** Objects are sent as JSON, strings unchanged. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface TestApp {
  readonly url: string
  readonly service: Service
  /** The service's first parent key. */
  readonly key: string
  /** Like the global `fetch`, but also checks the response against its schema. */
  readonly fetch: typeof fetch
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Creates an agent; returns the response body of `POST /v1/agents`. */
  createAgent(yaml?: string, key?: string): Promise<{ agent_id: string; agent_key: string }>
  /** Sends a streaming chat completion request. */
  stream(body: object, key?: string): Promise<StreamedAnswer>
  /** Creates an official OpenAI client that calls this service. */
  openai(key?: string): OpenAI
  close(): Promise<void>
}

export interface StreamedAnswer extends Answer {
  /** The parsed data of all events except `[DONE]`. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into chunks of every shape
  readonly events: any[]
  readonly isDone: boolean
}

/** Default settings for test services: data in memory, a short shutdown and one attempt per conversion. */
export const testEnvironment: Readonly<Record<string, string>> = {
  PARLEY_DATA_DIR: ':memory:',
  PORT: '0',
  LOG_LEVEL: 'silent',
  PARLEY_SHUTDOWN_SECONDS: '1',
  PARLEY_CONVERSION_TRIES: '1',
}

/** Starts a service and closes it when the test ends. */
export async function startApp(
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<TestApp> {
  const app = await openApp(env, options)
  onTestFinished(() => app.close())
  return app
}

/** Starts a service with a new data directory, and closes it when the test ends. */
export async function startAppOnDisk(
  env: Readonly<Record<string, string>>,
  options?: Omit<ServiceOptions, 'config'>,
): Promise<TestApp> {
  return startApp({ ...env, PARLEY_DATA_DIR: join(await makeFolder(), 'data') }, options)
}

/** Starts a service; the caller must close it. */
export async function openApp(
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<TestApp> {
  const database = await chooseDatabase(env)
  const { config } = await parseConfig({ ...testEnvironment, ...env, ...database.env })
  const log = createRedactedLog('debug', listSecrets(config), { write: checkLine })
  const service = await createService({ config, log, ...options })
  const app = createTestApp(service, env.PARLEY_PARENT_KEY ?? (service.firstParentKey as string))
  const close = async () => {
    await app.close()
    database.giveBack()
  }
  return { ...app, close }
}

/** Returns the test run's database; without Vitest, as in benchmarks, that is SQLite. */
function nameDatabase(): 'sqlite' | 'postgres' {
  return process.env.VITEST === undefined ? 'sqlite' : inject('database')
}

/** Database URLs by data directory, so that a restarted service uses the same database. */
const databaseUrls = new Map<string, string>()

/** Returns the database settings for a new service, and a function that frees the database. */
async function chooseDatabase(env: Readonly<Record<string, string>>) {
  const { PARLEY_DATA_DIR: dataDir = ':memory:' } = env
  if (nameDatabase() === 'sqlite' || env.DATABASE_URL !== undefined) return { env: {}, giveBack() {} }
  if (dataDir === ':memory:') {
    const { url, giveBack } = await borrowDatabase()
    return { env: { DATABASE_URL: url }, giveBack }
  }
  return { env: await databaseEnvironmentOf(dataDir), giveBack() {} }
}

/** Returns the database settings of the services that use a data directory. */
export async function databaseEnvironmentOf(dataDir: string): Promise<Record<string, string>> {
  if (nameDatabase() === 'sqlite') return {}
  const url = databaseUrls.get(dataDir) ?? (await borrowDatabase()).url
  databaseUrls.set(dataDir, url)
  return { DATABASE_URL: url }
}

function createTestApp(service: Service, parentKey: string): TestApp {
  const checker = new AnswerChecker()
  const checkedFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    const url = new URL(input instanceof Request ? input.url : input)
    const method = input instanceof Request ? input.method : (init?.method ?? 'GET')
    checker.check(method, url.pathname, response.clone())
    return response
  }

  async function call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { key = parentKey, body, headers = {}, signal } = options
    const isJson = typeof body === 'object'
    const response = await checkedFetch(service.url + path, {
      method,
      headers: {
        ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
        ...(isJson ? { 'Content-Type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : String(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const text = await response.text()
    forbidMessagesInLog(text)
    const isJsonAnswer = /^application\/json(;|$)/.test(response.headers.get('content-type') ?? '')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJsonAnswer && text !== '' ? JSON.parse(text) : null,
    }
  }

  return {
    url: service.url,
    service,
    key: parentKey,
    fetch: checkedFetch,
    call,
    async createAgent(yaml = GREETER, key = parentKey) {
      const answer = await call('POST', '/v1/agents', {
        key,
        body: yaml,
        headers: { 'Content-Type': 'application/yaml' },
      })
      if (answer.status !== 201) throw new Error(`the agent was not created: ${answer.text}`)
      return answer.body
    },
    async stream(body, key = parentKey) {
      const answer = await call('POST', '/v1/chat/completions', { key, body: { ...body, stream: true } })
      return { ...answer, ...readEvents(answer.text) }
    },
    openai: (key = parentKey) =>
      new OpenAI({ apiKey: key, baseURL: `${service.url}/v1`, fetch: checkedFetch, maxRetries: 0 }),
    async close() {
      await service.close()
      await checker.settle()
    },
  }
}

/** Parses a response body of server-sent events. */
export function readEvents(text: string): Pick<StreamedAnswer, 'events' | 'isDone'> {
  const data = text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
  return {
    events: data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text)),
    isDone: data.at(-1) === '[DONE]',
  }
}
