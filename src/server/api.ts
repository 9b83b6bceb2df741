/**
 * Lists all operations, which are used to build the tRPC router, the REST routes and the OpenAPI document.
 */
import { agentsOperations } from '../agents/operations.ts'
import { artifactsOperations } from '../artifacts/operations.ts'
import { uploadPaths } from '../artifacts/tus-openapi.ts'
import { meterOperations } from '../budgets/meter-operations.ts'
import { budgetsOperations } from '../budgets/operations.ts'
import { chatOperations } from '../chat/operations.ts'
import { adminOperations } from '../console/admin-operations.ts'
import { managerOperations } from '../console/operations.ts'
import { conversationsOperations, handoverOperations } from '../conversations/operations.ts'
import { embeddingsOperations } from '../embeddings/operations.ts'
import { filesOperations } from '../files/operations.ts'
import { keysOperations } from '../identity/operations.ts'
import { modelsOperations } from '../models/operations.ts'
import { priceOperations } from '../models/price-operations.ts'
import { providersOperations } from '../models/provider-operations.ts'
import { renderOpenapi } from '../operations/openapi.ts'
import type { NamedOperation, Operation } from '../operations/operation.ts'
import { listRestOperations } from '../operations/rest.ts'
import { createRouter, type Operations } from '../operations/trpc.ts'
import { responsesOperations } from '../responses/operations.ts'
import { usageOperations } from '../usage/operations.ts'
import { feedOperations, visitorOperations } from '../visitors/operations.ts'
import { withVisitors } from '../visitors/own-conversations.ts'
import { erasuresOperations, visitorsOperations } from '../visitors/owner-operations.ts'
import { webhooksOperations } from '../webhooks/operations.ts'
import type { Deps } from './dependencies.ts'

const api = {
  admin: adminOperations,
  agents: agentsOperations,
  artifacts: artifactsOperations,
  budgets: budgetsOperations,
  chat: chatOperations,
  files: filesOperations,
  embeddings: embeddingsOperations,
  keys: keysOperations,
  manager: managerOperations,
  meters: meterOperations,
  models: modelsOperations,
  prices: priceOperations,
  providers: providersOperations,
  responses: responsesOperations,
  conversations: {
    ...withVisitors({ ...conversationsOperations, ...handoverOperations }),
    ...feedOperations,
  },
  usage: usageOperations,
  visitor: visitorOperations,
  visitors: visitorsOperations,
  erasures: erasuresOperations,
  webhooks: webhooksOperations,
} satisfies Operations<Deps>

export const appRouter = createRouter(api)

export type AppRouter = typeof appRouter

/** Lists every operation with its name, such as `agents.create`. */
export function listOperations(): NamedOperation<Deps>[] {
  return Object.entries<Readonly<Record<string, Operation<Deps>>>>(api).flatMap(([module, operations]) =>
    Object.entries(operations).map(([name, operation]) => ({ name: `${module}.${name}`, operation })),
  )
}

export const restOperations = listRestOperations(listOperations())

export function renderApiDocument(): ReturnType<typeof renderOpenapi> {
  return renderOpenapi(restOperations, uploadPaths)
}
