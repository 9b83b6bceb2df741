/** The table of contents: every operation of the service, by room and verb. */

import { adminOperations } from '../admin/procedures.ts'
import { agentsOperations } from '../agents/procedures.ts'
import { artifactsOperations } from '../artifacts/procedures.ts'
import { chatOperations } from '../chat/procedures.ts'
import { managerOperations } from '../console/procedures.ts'
import type { Deps } from '../deps.ts'
import { embeddingsOperations } from '../embeddings/procedures.ts'
import { filesOperations } from '../files/procedures.ts'
import { keysOperations } from '../keys/procedures.ts'
import { modelsOperations } from '../models/procedures.ts'
import { responsesOperations } from '../responses/procedures.ts'
import { renderOpenapi } from '../rest/openapi.ts'
import { uploadPaths } from '../rest/openapi-uploads.ts'
import { listRestOperations } from '../rest/routes.ts'
import { usageOperations } from '../usage/procedures.ts'
import type { NamedOperation, Operation } from './op.ts'
import { createRouter, type Operations } from './trpc.ts'

const api = {
  admin: adminOperations,
  agents: agentsOperations,
  artifacts: artifactsOperations,
  chat: chatOperations,
  files: filesOperations,
  embeddings: embeddingsOperations,
  keys: keysOperations,
  manager: managerOperations,
  models: modelsOperations,
  responses: responsesOperations,
  usage: usageOperations,
} satisfies Operations<Deps>

export const appRouter = createRouter(api)

/** What a typed client is made from. */
export type AppRouter = typeof appRouter

/** Every operation with its name (`agents.create`), in the order of the table. */
export function listOperations(): NamedOperation<Deps>[] {
  return Object.entries<Readonly<Record<string, Operation<Deps>>>>(api).flatMap(([module, operations]) =>
    Object.entries(operations).map(([verb, operation]) => ({ name: `${module}.${verb}`, operation })),
  )
}

export const restOperations = listRestOperations(listOperations())

/** The document of the API; the same for the same code. */
export function renderApiDocument(): ReturnType<typeof renderOpenapi> {
  return renderOpenapi(restOperations, uploadPaths)
}
