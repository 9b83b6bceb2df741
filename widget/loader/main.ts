/** The script of `/embed/parley.js`: `ParleyChat` for the page, and the widget on it. Contract: Embeddable widget script. */
import { recordWebMcp } from '../host/tools/webmcp.ts'
import { createApi } from './api.ts'
import { installApi } from './install.ts'
import { findScript, readAttributes } from './script.ts'

const script = findScript()
recordWebMcp()
installApi(createApi(script?.src, readAttributes(script)))
