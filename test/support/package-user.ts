/** Contains a TypeScript program and a server-rendered page that use the package. */

/** A program that compiles only if the package's types are correct. */
export const typedProgram = `
import { type CompletedUpload, type Config, createService, type HostTools, parseConfig, type Service } from 'parley'
import { type AppRouter, type Client, createClient, type Inputs, isTRPCClientError, type Outputs } from 'parley/client'
import { ParleyChat, type ParleyChatProps, useParleyChat } from 'parley/react'
import type { ParleyChatConfig, WidgetEvents } from 'parley/widget'
import { createElement } from 'react'

const seen: CompletedUpload[] = []
const tools: HostTools = { greet: { handler: ({ name }) => 'Welcome, ' + String(name) } }

export async function start(variables: Record<string, string>): Promise<Service> {
  const { config }: { config: Config } = await parseConfig(variables)
  return createService({ config, tools, onUploadComplete: (artifact) => seen.push(artifact) })
}

export async function talk(client: Client): Promise<string> {
  const input: Inputs['agents']['create'] = { yaml: 'name: A\\ninstructions: B\\n' }
  const agent: Outputs['agents']['create'] = await client.agents.create.mutate(input)
  // @ts-expect-error: there is no such operation.
  client.agents.paint
  // @ts-expect-error: an id is a string.
  await client.agents.get.query({ agent_id: 7 })
  const visitor = createClient({ url: 'http://127.0.0.1:3000', key: agent.agent_key })
  let text = ''
  for await (const chunks of await visitor.chat.stream.mutate({ messages: [{ role: 'user', content: 'Hello' }] })) {
    for (const { choices } of chunks) text += choices[0]?.delta.content ?? ''
  }
  return text
}

export function statusOf(thrown: unknown): number | undefined {
  return isTRPCClientError<AppRouter>(thrown) ? thrown.data?.httpStatus : undefined
}

const props: ParleyChatProps = { apiKey: 'agnt_key-x', theme: 'dark' }
export const Chat = () => (useParleyChat().isReady ? null : createElement(ParleyChat, props))
// @ts-expect-error: there is no such theme.
export const Wrong = () => createElement(ParleyChat, { theme: 'plaid' })

const config: ParleyChatConfig = { apiKey: 'agnt_key-x', theme: 'dark', onUnread: ({ count }) => count.toFixed() }
window.ParleyChatConfig = config
window.ParleyChat?.on?.('message', ({ role }: WidgetEvents['message']) => role.trim())
// @ts-expect-error: there is no such method.
window.ParleyChat?.fly
// @ts-expect-error: there is no such option.
window.ParleyChatConfig = { colour: 'red' }
`

/** A strict tsconfig that also checks the package's declaration files. */
export const typedProject = JSON.stringify({
  compilerOptions: {
    ...{ module: 'nodenext', target: 'es2024', lib: ['es2024', 'dom', 'dom.iterable'], types: ['node'] },
    ...{ strict: true, noEmit: true, skipLibCheck: false },
  },
  files: ['typed.ts'],
})

/** A script that renders the component and its hook without a browser. */
export const renderedPage = `
import { ParleyChat, useParleyChat } from 'parley/react'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'

const State = () => createElement('output', null, JSON.stringify(useParleyChat()))
const page = createElement('main', null, createElement(ParleyChat, { apiKey: 'agnt_key-x' }), createElement(State))
process.stdout.write(renderToString(page).replaceAll('&quot;', '"'))
`
