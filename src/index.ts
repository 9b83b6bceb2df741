/** `parley`: the service for a program that runs it in its own process. */
import './needs-node.ts'

export type { Config, ParsedConfig } from './config.ts'
export { ConfigError, loadConfig, parseConfig } from './config.ts'
export type {
  CompletedUpload,
  HostHooks,
  HostTool,
  HostTools,
  OnUploadComplete,
  Service,
  ServiceOptions,
  UploadHooks,
} from './service.ts'
export { createService } from './service.ts'
export { StartupError } from './startup-error.ts'
