/** Creates the data that the soak test uses: a session, agents, an artifact and an image. */
import sharp from 'sharp'
import { type Client, createClient } from '../../client/rpc/index.ts'
import { toHead } from '../bench/transfers.ts'
import { consoleHeaders } from '../support/console.ts'
import { callServer } from '../support/process.ts'
import { type Target, uploadWhole } from '../support/uploads.ts'
import { Connections } from './connections.ts'
import type { SoakServer } from './server.ts'
import { TextSink } from './sinks.ts'

export interface World {
  readonly target: Target
  readonly connections: Connections
  readonly agentId: string
  readonly agentKey: string
  /** A client with a console session. */
  readonly page: Client
  /** The artifact whose status the clients request. */
  readonly artifactId: string
  readonly picture: Buffer
  /** The paths of the console's page and its assets, of the widget, and of the API's documentation. */
  readonly pagePaths: readonly string[]
}

const AGENTS = 20
export const agentYaml = 'name: Gardener\ninstructions: Help people with their plants.\nmodel: mock\n'

export async function createWorld(server: SoakServer): Promise<World> {
  const { url } = server
  const target: Target = { url, key: await server.printedKey(), fetch }
  const owner = createClient({ url, key: target.key })
  let agent = await owner.agents.create.mutate({ yaml: agentYaml })
  for (let count = 1; count < AGENTS; count++) agent = await owner.agents.create.mutate({ yaml: agentYaml })
  const captions = Buffer.from('WEBVTT\n\n00:00.000 --> 00:02.000\nWelcome.\n')
  const known = await uploadWhole(target, captions, { metadata: { filename: 'a.vtt', kind: 'captions' } })
  const connections = new Connections(server.port)
  return {
    target,
    connections,
    agentId: agent.agent_id,
    agentKey: agent.agent_key,
    page: createClient({ url, headers: { ...consoleHeaders, Cookie: await signIn(server) } }),
    artifactId: known.id,
    picture: await makePicture(),
    pagePaths: await listPagePaths(connections),
  }
}

/** Signs in; returns the session cookie. */
async function signIn(server: SoakServer): Promise<string> {
  const response = await fetch(`${server.url}/v1/manager/sign-in`, {
    method: 'POST',
    headers: { ...consoleHeaders, 'Content-Type': 'application/json' },
    body: JSON.stringify({ link: await server.printedLink() }),
  })
  if (response.status !== 200) throw new Error(`sign-in failed: ${response.status}`)
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

function makePicture(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 40 } as const
  return sharp({ create: { width: 640, height: 480, channels: 3, background: '#888', noise } })
    .png()
    .toBuffer()
}

async function listPagePaths(connections: Connections): Promise<string[]> {
  const { text } = await connections.exchange(toHead('GET', '/console', ''), new TextSink())
  const assets = text.match(/\/console\/assets\/[\w.-]+/g) ?? []
  return ['/console', ...new Set(assets), '/embed/parley.js', '/embed/frame', '/docs']
}

export async function removeArtifact({ target }: World, id: string): Promise<void> {
  const { status } = await callServer(target.url, 'DELETE', `/artifacts/${id}`, target.key)
  if (status !== 200) throw new Error(`the artifact was not deleted: ${status}`)
}
