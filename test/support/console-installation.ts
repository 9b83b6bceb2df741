/** Creates an installation with four weeks of simulated use through the API. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { templates } from '../../client/agents/templates.ts'
import { findCommand, testPrograms } from '../../scripts/programs.mjs'
import { serviceActor } from '../../src/identity/audit.ts'
import { createParentKey } from '../../src/identity/keys.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { openApp, type TestApp } from './app.ts'
import { ffmpeg, h264, makeVideo } from './conversion.ts'
import { tool } from './tools.ts'
import { uploadWhole } from './uploads.ts'
import { sendChat } from './usage.ts'

export interface Installation {
  readonly app: TestApp
  /** An agent with tools, several versions and an embed section. */
  readonly support: { readonly agent_id: string; readonly agent_key: string }
  /** The id of an uploaded video, or of captions if ffmpeg is missing. */
  readonly artifactId: string
  /** The ids of the agent's monthly budget and of the daily budget for each of its visitors. */
  readonly budgetId: string
  readonly visitorBudgetId: string
  close(): Promise<void>
}

const DAYS = 28
const DAY_MS = 86_400_000

/** A clock that is a number of days behind the system clock; `passDay` moves it forward by a day. */
interface LateClock extends Clock {
  passDay(): void
}

function createLateClock(days: number): LateClock {
  let left = days
  return {
    now: () => systemClock.now() - left * DAY_MS,
    monotonic: () => systemClock.monotonic() + (days - left) * DAY_MS,
    wait: systemClock.wait,
    passDay() {
      left -= 1
    },
  }
}

const orders = tool(() => [{ order: 'A-1042', state: 'on its way', arrives: 'Tuesday' }], {
  description: 'The orders of the customer who asks.',
})

/** Starts a service and simulates its use; the caller must close it. */
export async function openInstallation(): Promise<Installation> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-installation-'))
  // Creates the first key a day earlier, because keys from the same second have no defined order.
  const clock = createLateClock(DAYS + 1)
  const app = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') }, { clock, tools: { orders } })
  const close = async () => {
    await app.close()
    await rm(folder, { recursive: true })
  }
  try {
    clock.passDay()
    const { support, callers } = await createAgents(app)
    for (let day = 0; day < DAYS; day++) {
      await chatForDay(app, callers, day)
      clock.passDay()
    }
    await chatForDay(app, callers, DAYS)
    await app.service.deps.usage.flush()
    await createFiles(app)
    const budgets = await createBudgets(app, support.agent_id)
    return { app, support, ...budgets, artifactId: await createUploads(app, folder), close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Caller {
  readonly key: string
  /** The number of calls on a weekday, to which `chatForDay` applies growth and variation. */
  readonly calls: number
  readonly words: number
}

async function createAgents(app: TestApp) {
  const yamlOf = (id: string) => templates.find((template) => template.id === id)?.yaml ?? ''
  const support = await app.createAgent(yamlOf('support'))
  const edits = [
    (yaml: string) => yaml.replace('temperature: 0.3\n', 'temperature: 0.2\n\ntools:\n  - orders\n'),
    (yaml: string) => yaml.replace('under 120 words', 'under 80 words'),
  ]
  let yaml = yamlOf('support')
  for (const edit of edits) {
    yaml = edit(yaml)
    const { status, text } = await app.call('PUT', `/v1/agents/${support.agent_id}`, { body: { yaml } })
    if (status !== 200) throw new Error(text)
  }
  const guide = await app.createAgent(yamlOf('site-guide'))
  const analyst = await app.createAgent(yamlOf('analyst'))
  await app.createAgent(yamlOf('editor'))
  const { text: nightKey } = await createParentKey(app.service.deps, serviceActor, 'Night jobs')
  const callers: Caller[] = [
    { key: support.agent_key, calls: 7, words: 90 },
    { key: guide.agent_key, calls: 4, words: 40 },
    { key: analyst.agent_key, calls: 2, words: 160 },
    { key: nightKey, calls: 3, words: 220 },
  ]
  return { support, callers }
}

const questions = [
  'Where is my parcel? It was due on Friday, and it is not here.',
  'How do I return a pair of shoes that is too small, and who pays for the parcel?',
  'Can I change the address of a delivery that has not been sent yet?',
  'Which of the two sizes fits a customer who is 182 cm tall?',
]

/** Simulates one day of calls: a few more than on the previous day, and fewer at weekends. */
async function chatForDay(app: TestApp, callers: readonly Caller[], day: number): Promise<void> {
  const isWeekend = new Date(app.service.deps.clock.now()).getUTCDay() % 6 === 0
  const growth = (isWeekend ? 0.4 : 1) * (0.6 + (0.6 * day) / DAYS)
  await Promise.all(
    callers.flatMap(({ key, calls, words }, place) =>
      Array.from({ length: Math.round((calls + ((day * 5 + place) % 3)) * growth) }, (_, turn) => {
        const question = questions[(day + turn) % questions.length]
        // Streamed responses get shorter texts, because the mock model delays each word of a stream.
        const stream = turn % 3 === 0
        const tokens = stream ? 12 : words + ((day * 13 + turn * 7) % 60)
        const delayMs = (stream ? 8 : 30) + ((day * 11 + turn * 17 + place * 29) % (stream ? 12 : 90))
        const failure = day % 6 === 2 && turn === 1 ? '[[error:400]]' : ''
        return sendChat(
          app,
          `${question} [[delay:${delayMs}]] [[tokens:${tokens}]]${failure}`,
          { stream },
          key,
        )
      }),
    ),
  )
}

async function createBudgets(app: TestApp, agentId: string) {
  const create = async (scope: object, more: object): Promise<{ readonly id: string }> => {
    const { status, body, text } = await app.call('POST', '/v1/budgets', { body: { scope, ...more } })
    if (status !== 201) throw new Error(text)
    return body
  }
  const agent = { type: 'agent', id: agentId }
  await create({ type: 'key', id: app.key.slice(4, 16) }, { period: 'month', limit: '90000' })
  const { id: budgetId } = await create(agent, { period: 'month', limit: '40000' })
  await create(agent, { period: 'week', limit: '1500', mode: 'observe' })
  const visitor = { type: 'visitor', id: agentId }
  const { id: visitorBudgetId } = await create(visitor, { period: 'day', limit: '5000' })
  for (const user of ['ada', 'bob', 'eve'])
    await sendChat(app, `Hello. ${questions[0]}`, { model: `agent/${agentId}`, user, max_tokens: 64 })
  return { budgetId, visitorBudgetId }
}

/** Captions, which can be converted without ffmpeg. */
const captions = `WEBVTT

00:00.000 --> 00:02.000
Welcome to the tour of our workshop.
`

async function createUploads(app: TestApp, folder: string): Promise<string> {
  const spoken = await uploadWhole(app, Buffer.from(captions), {
    metadata: { filename: 'tour.vtt', name: 'Captions of the tour', kind: 'captions' },
  })
  if (findCommand(testPrograms.ffmpeg.commands) === undefined) return spoken.id
  const picture = join(folder, 'bench.jpg')
  await ffmpeg('-f', 'lavfi', '-i', 'mandelbrot=size=1280x720', '-frames:v', '1', picture)
  await uploadWhole(app, await readFile(picture), {
    metadata: { filename: 'bench.jpg', name: 'The long bench', kind: 'thumbnail' },
  })
  const video = join(folder, 'tour.mp4')
  await makeVideo(video, [...h264, '-t', '2'], 'mandelbrot=size=640x360:rate=10')
  const { id } = await uploadWhole(app, await readFile(video), {
    metadata: { filename: 'tour.mp4', name: 'Tour of the workshop', kind: 'video' },
  })
  return id
}

async function createFiles(app: TestApp): Promise<void> {
  for (const [filename, content] of [
    ['returns.txt', 'Unworn items can be returned within 30 days.\n'],
    ['prices.csv', 'article,price\nshoe,80\nlace,2\n'],
  ] as const) {
    const form = new FormData()
    form.append('purpose', 'assistants')
    form.append('file', new Blob([content]), filename)
    const headers = { Authorization: `Bearer ${app.key}` }
    const { status } = await app.fetch(`${app.url}/v1/files`, { method: 'POST', headers, body: form })
    if (status !== 200) throw new Error(`the file was not created: ${status}`)
  }
}
