/** The page in the frame: everything the widget shows except the launcher. */
import './styles.css'
import { createRoot } from 'react-dom/client'
import { App } from './App.tsx'
import { openChannel } from './channel.ts'
import { createSession } from './session.ts'

const session = createSession()
const root = document.createElement('div')
root.id = 'root'
document.body.append(root)
createRoot(root).render(<App session={session} />)
openChannel(session.receive)
