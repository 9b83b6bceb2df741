/** Sends agent definitions, creates tenants, lists agents, and returns the errors of failed tRPC calls. */
import { TRPCClientError } from '@trpc/client'
import { serviceActor } from '../../src/identity/audit.ts'
import { createParentKey } from '../../src/identity/keys.ts'
import type { Answer, TestApp } from './app.ts'

/** The YAML media types that the API accepts. */
export const rawYamlTypes = ['application/yaml', 'text/yaml', 'application/x-yaml'] as const

/** A definition with most of the fields, and with an unknown key. */
export const FULL_DEFINITION = `# Support, first line
name: Guide
model: mock
temperature: 1.25
tools:
  - search
  - name: look_up
    description: Finds an order.
    inputSchema:
      type: object
      properties: { id: { type: string } }
      required: [id]
pageTools:
  blocked: [deleteEverything]
behavior:
  tone: calm
  rules: [Be brief., Say please.]
embed:
  greeting: Hello there!
  title: Ask me
  starters: [What is new?, Help me]
  theme: { primaryColor: '#0f766e', headerStyle: solid, teaser: 'Questions?' }
unknown_key: { kept: true }
instructions: |
  Help people.
  Use look_up for orders.
`

export async function sendDefinition(
  app: TestApp,
  method: 'POST' | 'PUT',
  path: string,
  mediaType: string,
  text: string | Uint8Array<ArrayBuffer>,
): Promise<Answer> {
  const response = await app.fetch(app.url + path, {
    method,
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': mediaType },
    body: text,
  })
  const answer = await response.text()
  return { status: response.status, headers: response.headers, text: answer, body: JSON.parse(answer) }
}

/** Creates another tenant; returns its parent key. */
export async function createTenant(app: TestApp): Promise<string> {
  return (await createParentKey(app.service.deps, serviceActor, 'another')).text
}

/** Lists the ids of a key's agents. */
export async function listIds(app: TestApp, query = '', key = app.key): Promise<string[]> {
  const { body } = await app.call('GET', `/v1/agents${query}`, { key })
  return body.data.map(({ id }: { id: string }) => id)
}

/** Returns the error of a tRPC call, which must fail. */
export async function rpcErrorOf(
  call: Promise<unknown>,
): Promise<{ status: number; code: string; message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof TRPCClientError)) throw new Error('the call did not fail', { cause: error })
  return { status: error.data.httpStatus, code: error.data.code, message: error.message }
}
