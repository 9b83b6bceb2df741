/** Starts the frame, which contains all of the widget except the launcher. */
import './styles.css'
import { createRoot } from 'react-dom/client'
import { openChannel } from './channel.ts'
import { readOperator } from './chat/choose-server.ts'
import { App } from './components/App.tsx'
import { createParser, startWorker } from './markdown/parser.ts'
import { createSession } from './session.ts'
import { createTrial } from './trial/trial.ts'

const trial = 'trial' in document.documentElement.dataset ? createTrial() : undefined
const session = createSession(readOperator(document.documentElement, location), trial)
const root = document.createElement('div')
root.className = 'root'
document.body.append(root)
createRoot(root).render(<App session={session} parser={createParser(startWorker)} />)
openChannel(session.receive, trial?.connect)
