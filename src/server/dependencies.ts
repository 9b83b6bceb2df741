/** Declares the dependencies of a service's modules; `build.ts` creates them. */

import type { Dependencies as AgentsDependencies } from '../agents/dependencies.ts'
import type { ArtifactService, Dependencies as ArtifactsDependencies } from '../artifacts/dependencies.ts'
import type { BoundViolations } from '../budgets/bound-violations.ts'
import type { ModelMeters } from '../budgets/model-meters.ts'
import type { Dependencies as ChatDependencies } from '../chat/dependencies.ts'
import type { Dependencies as ConsoleDependencies } from '../console/dependencies.ts'
import type { Dependencies as FilesDependencies } from '../files/dependencies.ts'
import type { ArtifactTokens } from '../identity/artifact-tokens.ts'
import type { LivePrices } from '../models/live-prices.ts'
import type { LiveProviders } from '../models/live-providers.ts'
import type { AddressSharing } from '../operations/address-sharing.ts'
import type { Dependencies as OperationsDependencies } from '../operations/dependencies.ts'
import type { Authenticator } from '../operations/operation.ts'
import type { PriceBook } from '../prices/lookup.ts'
import type { ChatBackend } from '../providers/provider.ts'
import type { Dependencies as VisitorsDependencies } from '../visitors/dependencies.ts'
import type { Dependencies as WebhooksDependencies } from '../webhooks/dependencies.ts'

export interface Deps
  extends AgentsDependencies,
    ArtifactsDependencies,
    ChatDependencies,
    ConsoleDependencies,
    FilesDependencies,
    Omit<VisitorsDependencies, 'visitorUploads'>,
    Omit<WebhooksDependencies, 'conversations'> {
  /** The providers in the configuration. */
  readonly backends: readonly ChatBackend[]
  readonly providers: LiveProviders
  readonly prices: PriceBook
  readonly priceOverrides: LivePrices
  readonly meters: ModelMeters
  readonly violations: BoundViolations
  readonly artifacts: ArtifactService
  readonly tokens: ArtifactTokens
  readonly authenticator: Authenticator
  readonly addressSharing: AddressSharing
  readonly attachmentBytes: OperationsDependencies['attachmentBytes']
  readonly inArea: ((area: string) => Deps) | undefined
}
