/** Exports the service for programs that embed it. */
import './require-node.ts'

export type { Config } from './config/config.ts'
export { ConfigError, loadConfig, type ParsedConfig, parseConfig } from './config/parse.ts'
export { StartupError } from './lib/errors.ts'
export type { ServiceOptions } from './server/build.ts'
export {
  type CompletedUpload,
  createService,
  type EndedConversion,
  type HostHooks,
  type HostTool,
  type HostTools,
  type OnConversionEnd,
  type OnUploadComplete,
  type Service,
  type UploadHooks,
} from './server/service.ts'
